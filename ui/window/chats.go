package window

import (
	"log/slog"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
	"github.com/dustin/go-humanize"

	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/ui/window/look"
)

// chats are the file of kept chats, which may be missing.
func (w *Window) chats() prompts.Chats { return prompts.ChatsIn(w.keepIn()) }

// keepChat keeps an answer that the target in folder dir has ended by itself, with what led to it,
// where the person has asked for that.
func (w *Window) keepChat(messages []message, answer, dir string) {
	if !w.settings.KeepChats || answer == "" || w.keepIn() == "" {
		return
	}
	all := append(slices.Clone(messages), message{Role: "assistant", Content: answer})
	w.spawn(func() {
		identity, err := library.Identity(dir)
		if err == nil {
			err = w.chats().Add(all, identity)
		}
		if err != nil {
			slog.Warn("a chat could not be kept", "error", err)
			w.later(func() { w.say("This chat could not be kept for training: " + oneLine(err)) })
		}
	})
}

// keptWords tells, in the background, how many answers are kept; "" where none are.
func (w *Window) keptWords(tell func(words string)) {
	w.spawn(func() {
		n, size, err := w.chats().Count()
		words := ""
		switch {
		case err != nil:
			words = oneLine(err)
		case n == 1:
			words = "1 answer is kept, " + look.FilesFinely(size) + "."
		case n > 1:
			words = humanize.Comma(int64(n)) + " answers are kept, " + look.FilesFinely(size) + "."
		}
		w.later(func() { tell(words) })
	})
}

// chatSettings is the part of the settings that says whether chats are kept, and deletes them.
func (w *Window) chatSettings() fyne.CanvasObject {
	keep := widget.NewCheck("Keep my chats on "+look.Machine()+" for training", nil)
	keep.SetChecked(w.settings.KeepChats)
	keep.OnChanged = func(on bool) {
		w.settings.KeepChats = on
		w.save()
	}
	about := look.Sentences("Train, Tune and Calibrate can then learn from what you really ask. Nothing leaves " + look.Machine() + ".")
	about.SizeName = theme.SizeNameCaptionText
	kept := look.Caption("")
	kept.Shrink = true
	remove := look.NewTextButton("Delete them…", w.askDeleteChats)
	line := look.Line(look.Unit, 0, kept, remove)
	line.Hide()
	rows := look.Rows(look.Unit/2, look.Tight(keep), look.Pad(0, 0, 28, 0, look.Rows(look.Unit/2, look.Tight(about), line)))
	w.keptWords(func(words string) {
		kept.Set(words)
		if words != "" {
			line.Show()
		}
		rows.Refresh()
	})
	return rows
}

func (w *Window) askDeleteChats() {
	text := look.Sentences("The chats that were kept for training are deleted from " + look.Machine() + ". What drafters have learned from them stays in those drafters.")
	w.showDialog(dialog.NewCustomConfirm("Delete the kept chats?", "Delete", "Keep them", look.Fixed(400, 0, text), func(yes bool) {
		if !yes {
			w.showSettings()
			return
		}
		w.spawn(func() {
			err := w.chats().Delete()
			w.later(func() {
				if err != nil {
					slog.Error("the kept chats could not be deleted", "error", err)
					w.say("The chats could not be deleted: " + oneLine(err))
					return
				}
				w.say("The kept chats are deleted.")
			})
		})
	}, w.win))
}
