package window

import (
	"log/slog"

	"firesteel/ui/words"
)

// oneLine puts an error into one line: what happened and what to do.
func oneLine(err error) string { return words.Explain(err).String() }

// explain says in the status line what went wrong, and records it in full; doing is what failed.
func (w *Window) explain(doing string, err error) {
	slog.Error(doing+" failed", "error", err)
	w.say(oneLine(err))
}
