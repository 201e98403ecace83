package answer

import (
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

const ribbonHelp = "Each bar is one check. Orange: words guessed ahead and kept. Grey: the target's own word."

// View is the conversation. All methods belong to the UI thread.
type View struct {
	widget.BaseWidget
	OnCopy  func(text string) // Copy was pressed, under an answer or on code
	OnRetry func(*Turn)
	OnLog   func() // Show Log was pressed, under an error's details

	hints   *look.Hints
	scroll  *container.Scroll
	content *fyne.Container
	flow    *flow
	turns   []*Turn
	empty   fyne.CanvasObject
	stack   *fyne.Container
	follow  bool
	moving  bool // we are scrolling, not the person
}

// New returns an empty conversation, which shows empty until something is asked.
func New(hints *look.Hints, empty fyne.CanvasObject) *View {
	v := &View{hints: hints, flow: &flow{}, empty: empty, follow: true}
	v.ExtendBaseWidget(v)
	v.content = container.New(v.flow)
	v.scroll = container.NewVScroll(v.content)
	v.scroll.OnScrolled = func(p fyne.Position) {
		if !v.moving {
			v.follow = p.Y+v.scroll.Size().Height >= v.flow.total-2*look.Unit
		}
		v.flow.view(p.Y, v.scroll.Size().Height)
	}
	v.stack = container.NewStack(v.scroll, v.empty)
	return v
}

// Turns returns the conversation, oldest first.
func (v *View) Turns() []*Turn { return v.turns }

// Clear empties the conversation.
func (v *View) Clear() {
	v.turns, v.flow.entries = nil, nil
	v.follow = true
	v.empty.Show()
	v.changed()
}

// Drop takes the turn and all after it out of the conversation.
func (v *View) Drop(t *Turn) {
	for i, o := range v.turns {
		if o == t {
			for _, gone := range v.turns[i:] {
				for _, e := range gone.entries {
					v.flow.remove(e)
				}
			}
			v.turns = v.turns[:i]
			break
		}
	}
	if len(v.turns) == 0 {
		v.empty.Show()
	}
	v.changed()
}

// Remeasure lays everything out anew, as after a change of the text size.
func (v *View) Remeasure() {
	for _, e := range v.flow.entries {
		e.dirty = true
		e.object.Refresh()
	}
	v.changed()
}

// Following says whether the view stays at the end as text arrives.
func (v *View) Following() bool { return v.follow }

// ScrollTo moves the view as a person would.
func (v *View) ScrollTo(y float32) {
	v.scroll.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.Delta{DY: v.scroll.Offset.Y - y}})
}

// Height returns how high the whole conversation is, in Fyne's pixels.
func (v *View) Height() float32 { return v.flow.total }

// changed brings the screen up to date after entries were added, removed or altered.
func (v *View) changed() {
	v.content.Objects = v.flow.objects()
	width := v.flow.width
	if width == 0 {
		width = v.scroll.Size().Width
	}
	v.flow.arrange(width)
	v.moving = true
	// Not scroll.Refresh, which refreshes every block there is.
	seen := v.scroll.Size()
	v.content.Resize(fyne.NewSize(seen.Width, max(seen.Height, v.flow.total)))
	if v.follow {
		v.scroll.ScrollToBottom()
	} else {
		at := v.scroll.Offset
		v.scroll.Offset.Y-- // so that it takes notice
		v.scroll.ScrollToOffset(at)
	}
	v.moving = false
	v.flow.view(v.scroll.Offset.Y, v.scroll.Size().Height)
}

// CreateRenderer is Fyne's way to draw the widget.
func (v *View) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(v.stack) }

// Turn is a prompt and its answer.
type Turn struct {
	Prompt string // whole, as it was sent
	view   *View

	answer   strings.Builder
	splitter splitter
	open     *entry // shows the block still being written
	piece    *piece
	first    bool // no block yet
	entries  []*entry

	writer      *look.Text
	stats       *entry
	ribbon      *ribbon
	line        *look.Text
	copy, retry *look.TextButton
	tokens      int
	elapsed     time.Duration
	checks      int
	words       int // committed by checks
	done        bool
}

// Begin adds a prompt, under which model's answer will appear.
func (v *View) Begin(prompt, model string) *Turn {
	t := &Turn{Prompt: prompt, view: v, first: true}
	v.turns = append(v.turns, t)
	v.empty.Hide()
	space := 4 * look.Unit
	if len(v.turns) == 1 {
		space = 0
	}
	t.add(look.Heading("You"), space, 0)
	t.showPrompt()
	t.writer = look.Heading(model)
	t.add(t.writer, 3*look.Unit, 0)

	t.ribbon = newRibbon()
	t.ribbon.onHover = func(inside bool) {
		if inside {
			v.hints.Show(t.ribbon, ribbonHelp)
		} else {
			v.hints.Hide()
		}
	}
	t.line = look.Caption("")
	t.line.Shrink = true
	t.copy = look.NewTextButton("Copy", func() { v.copied(t.Answer()) })
	t.retry = look.NewTextButton("Retry", func() {
		if v.OnRetry != nil {
			v.OnRetry(t)
		}
	})
	t.copy.Hide()
	t.retry.Hide()
	t.ribbon.Hide()
	t.stats = t.add(look.Fixed(0, 28, look.Line(look.Unit, 1, t.ribbon, t.line, t.copy, t.retry)), 12, 0)
	v.follow = true
	v.changed()
	return t
}

func (v *View) copied(text string) {
	if v.OnCopy != nil {
		v.OnCopy(text)
	}
}

// promptShown is how many bytes of a prompt are shown at first.
const promptShown = 1200

func (t *Turn) showPrompt() {
	shown := t.Prompt
	if len(shown) > promptShown {
		shown = strings.ToValidUTF8(shown[:promptShown], "") + " …"
	}
	label := text()
	label.SetText(shown)
	e := t.add(look.Tight(label), look.Unit, 0)
	if len(t.Prompt) <= promptShown {
		return
	}
	var more *entry
	button := look.NewTextButton(fmt.Sprintf("Show all %d words", len(strings.Fields(t.Prompt))), func() {
		for rest := t.Prompt; rest != ""; {
			cut := len(rest)
			if cut > longest {
				cut = cutAt(rest)
			}
			part := text()
			part.SetText(strings.Trim(rest[:cut], "\n"))
			t.insert(look.Tight(part), 0, 0, more)
			rest = rest[cut:]
		}
		t.drop(e)
		t.drop(more)
		t.view.follow = false
		t.view.changed()
	})
	more = t.add(look.Line(0, -1, button), 0, -look.Unit)
}

func (t *Turn) add(o fyne.CanvasObject, gap, indent float32) *entry {
	return t.insert(o, gap, indent, nil)
}

func (t *Turn) insert(o fyne.CanvasObject, gap, indent float32, before *entry) *entry {
	e := &entry{object: o, gap: gap, indent: indent}
	t.entries = append(t.entries, e)
	t.view.flow.add(e, before)
	return e
}

func (t *Turn) drop(e *entry) {
	t.view.flow.remove(e)
	for i, o := range t.entries {
		if o == e {
			t.entries = append(t.entries[:i], t.entries[i+1:]...)
			return
		}
	}
}

// Answer returns what has been written so far, as the model wrote it.
func (t *Turn) Answer() string { return t.answer.String() }

// Done says whether the answer has ended.
func (t *Turn) Done() bool { return t.done }

// By names the model that answers, where Begin could not know it yet.
func (t *Turn) By(model string) { t.writer.Set(model) }

// Writer returns the name of the model that answers.
func (t *Turn) Writer() string { return t.writer.Text() }

// Say shows words in place of the figures, while there are none.
func (t *Turn) Say(words string) { t.line.Set(words) }

// Line returns the words under the answer.
func (t *Turn) Line() string { return t.line.Text() }

// cursor marks where the next word will appear.
const cursor = "▌"

// Add appends newly written text and checks, and brings the screen up to date once.
// tokens and elapsed are the newest figures, zero where there are none yet.
func (t *Turn) Add(delta string, rounds []Round, tokens int, elapsed time.Duration) {
	if delta != "" {
		t.answer.WriteString(delta)
		done, open, ok := t.splitter.feed(delta)
		for _, b := range done {
			t.freeze(b)
		}
		if ok {
			if open.kind != code && open.kind != table {
				open.text += cursor
			}
			t.showOpen(open)
		}
	}
	if len(rounds) > 0 {
		for _, r := range rounds {
			t.checks++
			t.words += r.Accepted + 1
		}
		t.ribbon.add(rounds)
		if !t.ribbon.Visible() {
			t.ribbon.Show()
			t.stats.dirty = true
		}
	}
	if tokens > 0 {
		t.tokens, t.elapsed = tokens, elapsed
		t.line.Set(t.figures(0, ""))
	}
	t.view.changed()
}

// freeze turns the open piece into the finished block b.
func (t *Turn) freeze(b block) {
	t.showOpen(b)
	t.open, t.piece = nil, nil
}

func (t *Turn) showOpen(b block) {
	if t.open != nil && t.piece.fits(b) {
		if t.piece.block.text != b.text || b.kind == table {
			t.piece.update(b)
			t.open.dirty = true
		}
		return
	}
	if t.open != nil {
		t.drop(t.open)
	}
	t.piece = newPiece(b, t.view.copied)
	space := gap(b, false)
	if t.first {
		space, t.first = look.Unit, false
	}
	t.open = t.insert(t.piece.object, space, float32(b.level)*2*look.Unit*listOnly(b), t.stats)
}

func listOnly(b block) float32 {
	if b.kind == item {
		return 1
	}
	return 0
}

func (t *Turn) figures(firstWord time.Duration, note string) string {
	var parts []string
	if t.tokens > 1 && t.elapsed > 0 {
		parts = append(parts, fmt.Sprintf("%.0f tok/s", float64(t.tokens-1)/t.elapsed.Seconds()))
	}
	if t.checks > 0 && t.words > t.checks {
		parts = append(parts, fmt.Sprintf("%.1f words per check", float64(t.words)/float64(t.checks)))
	}
	if firstWord > 0 {
		parts = append(parts, fmt.Sprintf("first word %.1f s", firstWord.Seconds()))
	}
	if note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, " · ")
}

// Finish ends the answer. rate (tokens a second) and perCheck replace what was counted
// while it ran where they aren't zero; note says in a word or two how it ended, if not by
// itself.
func (t *Turn) Finish(firstWord time.Duration, rate, perCheck float64, note string) {
	t.close()
	if rate > 0 && t.tokens > 1 {
		t.elapsed = time.Duration(float64(t.tokens-1) / rate * float64(time.Second))
	}
	if perCheck > 0 && t.checks > 0 && t.words > t.checks {
		t.words = int(perCheck*float64(t.checks) + 0.5)
	}
	t.line.Set(t.figures(firstWord, note))
	t.view.changed()
}

func (t *Turn) close() {
	if t.done {
		return
	}
	t.done = true
	for _, b := range t.splitter.finish() {
		t.freeze(b)
	}
	t.ribbon.finish()
	if t.answer.Len() > 0 {
		t.copy.Show()
	}
	t.retry.Show()
	t.stats.dirty = true
}

// Fail ends the answer with what happened and what to do; what was written stays. details,
// the error in the program's own words, shows when a person asks for it.
func (t *Turn) Fail(what, next, details string) {
	t.close()
	t.line.Set(t.figures(0, ""))
	var e *entry
	e = t.insert(notice(what, next, details, func() {
		e.dirty = true
		t.view.changed()
	}, t.view.OnLog), look.Unit, 0, t.stats)
	t.view.changed()
}

// notice is a card that says what went wrong and what to do. grown is called when the details
// have been opened, log when the log is asked for there; without log nobody can.
func notice(what, next, details string, grown, log func()) fyne.CanvasObject {
	words := []fyne.CanvasObject{}
	for i, s := range []string{what, next} {
		if s == "" {
			continue
		}
		l := text()
		l.SetText(s)
		if i == 0 {
			l.TextStyle = fyne.TextStyle{Bold: true}
		}
		words = append(words, look.Tight(l))
	}
	if details != "" {
		more := text()
		more.SizeName, more.Wrapping = theme.SizeNameCaptionText, fyne.TextWrapBreak
		more.SetText(details)
		hidden := look.Rows(0, look.Tight(more))
		if log != nil {
			hidden.Add(look.Pad(4, 0, -look.Unit, 0, look.Line(0, -1, look.NewTextButton("Show Log", log))))
		}
		hidden.Hide()
		var button *look.TextButton
		button = look.NewTextButton("Details", func() {
			button.Hide()
			hidden.Show()
			grown()
		})
		words = append(words, look.Pad(0, 0, -look.Unit, 0, look.Line(0, -1, button)), hidden)
	}
	return container.NewStack(look.NewPanel(look.ColorNotice, theme.ColorNameError, 8), look.Pad(12, 12, 16, 16, look.Rows(4, words...)))
}
