package window

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/engine"
	"firesteel/ui/window/answer"
	"firesteel/ui/window/journal"
	"firesteel/ui/window/look"
	"firesteel/ui/words"
)

// writing is the answer under way.
type writing struct {
	turn    *answer.Turn // not nil from send to the end
	cancel  context.CancelFunc
	waiting bool // the turn has been sent and waits for a model
	kept    time.Time
}

// keepEvery is how much of an answer a program that is ended by force may lose.
const keepEvery = time.Second

// keep writes what there is of the answer into the journal, in the background.
func (w *Window) keep() {
	if time.Since(w.writing.kept) < keepEvery {
		return
	}
	w.writing.kept = time.Now()
	w.changes++
	t, order := w.writing.turn, w.changes
	page := journal.Page{Prompt: t.Prompt, Answer: t.Answer(), Model: w.writerName(), When: time.Now()}
	w.spawn(func() {
		if err := w.journal.Keep(order, page); err != nil {
			slog.Warn("the answer could not be kept on disk", "error", err)
		}
	})
}

// forget takes the answer out of the journal: it has ended and is on the screen.
func (w *Window) forget() {
	w.changes++
	order := w.changes
	w.spawn(func() { w.journal.Clear(order) })
}

// offer shows what an earlier run of the program left unfinished, to be taken up again.
func (w *Window) offer(p journal.Page, forget func()) {
	if p.Prompt == "" {
		return
	}
	w.left.Objects = nil
	title := look.NewText("An answer was cut off when Firesteel closed.")
	title.Align = fyne.TextAlignCenter
	opening := look.Caption("“" + firstWords(p.Prompt) + "”")
	opening.Align = fyne.TextAlignCenter
	answered := func(show bool) func() {
		return func() {
			w.left.Hide()
			w.spawn(forget)
			if show {
				t := w.talk.Begin(p.Prompt, p.Model)
				t.Add(p.Answer, nil, 0, 0)
				t.Finish(0, 0, 0, "cut off when Firesteel closed")
				w.showMenu()
			}
			w.focusPrompt()
		}
	}
	buttons := container.NewCenter(look.Line(look.Unit, -1,
		widget.NewButton("Show it", answered(true)), widget.NewButton("Discard", answered(false))))
	w.left.Add(look.Pad(0, 24, 0, 0, look.Card(look.Rows(look.Unit, title, opening, buttons))))
	w.left.Show()
	w.talk.Refresh()
}

// firstWords returns the beginning of a text, on one line.
func firstWords(text string) string {
	line := strings.Join(strings.Fields(text[:min(len(text), 240)]), " ")
	if r := []rune(strings.ToValidUTF8(line, "")); len(r) > 56 {
		return string(r[:56]) + "…"
	}
	return strings.ToValidUTF8(line, "")
}

// lineEnds makes every line end the same, whatever system a pasted text comes from.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\ufeff", "")

// send begins an answer to text.
func (w *Window) send(text string) {
	if w.writing.turn != nil {
		return
	}
	starting := w.core == nil && w.startErr == nil
	if !starting && w.load.cancel == nil && !w.choosing() && w.models.loaded.Target == nil {
		w.say(oneLine(engine.ErrNothingLoaded))
		return
	}
	w.prompt.SetText("")
	w.ask(strings.TrimSpace(lineEnds.Replace(text)))
}

// choosing says whether the folders chosen are still being looked at.
func (w *Window) choosing() bool {
	return w.models.choices[target].looking || w.models.choices[drafter].looking
}

func (w *Window) ask(text string) {
	w.writing.turn = w.talk.Begin(text, w.writerName())
	w.prompt.Running(true)
	w.keep()
	if w.core == nil || w.models.loaded.Target == nil || w.load.cancel != nil {
		w.writing.waiting = true
		w.writing.turn.Say("Waiting for the model …")
	} else {
		w.write()
	}
	w.showMenu()
}

// writerName is who answers.
func (w *Window) writerName() string {
	for _, d := range []*choice{{what: w.models.loadedWhat[target]}, &w.models.choices[target]} {
		if d.what != nil {
			return d.what.Name
		}
	}
	return demoTarget
}

// sendWaiting begins the answer that waited for a model, or says why there is none.
func (w *Window) sendWaiting(err error) {
	t := w.writing.turn
	if t == nil || !w.writing.waiting {
		return
	}
	w.writing.waiting = false
	if w.models.loaded.Target != nil {
		w.write()
		return
	}
	if errors.Is(err, context.Canceled) {
		w.talk.Drop(t)
		if strings.TrimSpace(w.prompt.Text()) == "" {
			w.prompt.SetText(t.Prompt)
		}
		w.writingEnded()
		return
	}
	if err == nil {
		err = engine.ErrNothingLoaded
	}
	w.failed(t, err)
	w.writingEnded()
}

// message is one turn of a conversation.
type message = engine.Message

// history returns the conversation up to and with turn t. Turns without an answer are left out.
func (w *Window) history(t *answer.Turn) []message {
	var out []message
	for _, o := range w.talk.Turns() {
		if o == t {
			break
		}
		if a := o.Answer(); a != "" {
			out = append(out, message{Role: "user", Content: o.Prompt}, message{Role: "assistant", Content: a})
		}
	}
	return append(out, message{Role: "user", Content: t.Prompt})
}

// write runs the model for the turn under way.
func (w *Window) write() {
	t, core := w.writing.turn, w.core
	t.By(w.writerName())
	ctx, cancel := context.WithCancel(w.life)
	w.writing.cancel = cancel
	w.showKnobs()
	request := engine.Request{Messages: w.history(t), Controls: w.controls}
	g := w.recommended()
	if g.TopP != nil {
		request.TopP = *g.TopP
	}
	if g.TopK != nil {
		request.TopK = *g.TopK
	}
	if g.MinP != nil {
		request.MinP = *g.MinP
	}
	writer := w.models.loaded.Target.Dir
	f := &feed{post: w.later}
	f.apply = func(b batch) { w.apply(t, b) }
	w.say("Reading your text …")
	w.spawn(func() {
		defer cancel()
		left := 0 // turns left out because the model can't read that much
		var result engine.Result
		var err error
		for {
			result, err = core.Generate(ctx, request, f.push)
			var long *engine.PromptTooLongError
			if !errors.As(err, &long) || len(request.Messages) < 3 {
				break
			}
			request.Messages = request.Messages[2:]
			left++
		}
		w.later(func() {
			f.flush()
			if err == nil && result.Stop == engine.StopToken {
				w.keepChat(request.Messages, result.Text, writer)
			}
			w.ended(t, result, left, err)
		})
	})
}

// apply changes the screen for what has happened since the last time.
func (w *Window) apply(t *answer.Turn, b batch) {
	if w.writing.turn != t {
		return
	}
	switch {
	case b.delta != "" || b.tokens > 0:
		w.say("Writing …")
	case b.total > 0 && b.done < b.total:
		w.say(fmt.Sprintf("Reading your text … %d %%", 100*b.done/b.total))
	}
	t.Add(b.delta, b.rounds, b.tokens, b.elapsed)
	w.keep()
}

func (w *Window) ended(t *answer.Turn, r engine.Result, left int, err error) {
	if w.writing.turn != t {
		return
	}
	var notes []string
	if left > 0 {
		notes = append(notes, "the oldest part of this chat was left out")
	}
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		switch r.Stop {
		case engine.StopCancelled:
			notes = append(notes, "stopped")
		case engine.StopContext:
			notes = append(notes, "ended: this chat is as long as the model can read")
		}
		if t.Answer() == "" && r.Stop != engine.StopCancelled {
			notes = append(notes, "the model had nothing to say")
		}
		w.say("Ready.")
		t.Finish(r.TimeToFirstToken, r.TokensPerSecond, r.Tau, strings.Join(notes, " · "))
	default:
		w.failed(t, err)
	}
	w.writingEnded()
}

// failed ends a turn with what happened. What was written stays; a prompt that got no answer
// goes back into the box.
func (w *Window) failed(t *answer.Turn, err error) {
	sentence := words.Explain(err)
	slog.Error("writing failed", "error", err)
	t.Fail(sentence.What, sentence.Next, sentence.Details)
	if t.Answer() == "" && strings.TrimSpace(w.prompt.Text()) == "" {
		w.prompt.SetText(t.Prompt)
	}
	w.say("Ready.")
}

func (w *Window) writingEnded() {
	w.writing = writing{}
	w.forget()
	w.prompt.Running(false)
	w.showMenu()
}

// stop ends the answer under way; what is written stays.
func (w *Window) stop() {
	t := w.writing.turn
	switch {
	case t == nil:
	case w.writing.waiting:
		t.Finish(0, 0, 0, "stopped")
		w.writingEnded()
	case w.writing.cancel != nil:
		w.writing.cancel()
		w.say("Stopping …")
	}
}

// retry answers a prompt again: in place of the last answer, or else at the end.
func (w *Window) retry(t *answer.Turn) {
	if w.writing.turn != nil {
		return
	}
	if w.models.loaded.Target == nil && w.load.cancel == nil {
		w.say(oneLine(engine.ErrNothingLoaded))
		return
	}
	turns := w.talk.Turns()
	if len(turns) > 0 && turns[len(turns)-1] == t {
		w.talk.Drop(t)
	}
	if w.prompt.Text() == t.Prompt { // it had come back after an error
		w.prompt.SetText("")
	}
	w.ask(t.Prompt)
	w.focusPrompt()
}

// retryLast answers the last prompt again.
func (w *Window) retryLast() {
	if turns := w.talk.Turns(); len(turns) > 0 {
		w.retry(turns[len(turns)-1])
	}
}

// newChat empties the conversation.
func (w *Window) newChat() {
	w.stop()
	if w.writing.turn != nil {
		// The run ends within a check; nobody waits for its words any more.
		w.writingEnded()
	}
	w.talk.Clear()
	w.say("Ready.")
	w.focusPrompt()
	w.showMenu()
}
