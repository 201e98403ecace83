package window

import "firesteel/ui/words"

// oneLine puts an error into one line: what happened and what to do.
func oneLine(err error) string { return words.Explain(err).String() }
