package window

import (
	"errors"
	"fmt"
	"strings"

	"firesteel/core/engine"
	"firesteel/core/library"
)

// explain puts an error into one sentence and what to do about it.
func explain(err error) (what, next string) {
	var pair *library.PairError
	var long *engine.PromptTooLongError
	switch {
	case errors.As(err, &pair):
		return fmt.Sprintf("This drafter was not made for %s.", pair.Target), "Choose another drafter, or none."
	case errors.As(err, &long):
		return "The text is longer than this model can read.", "Shorten it, or start a new chat."
	case errors.Is(err, engine.ErrNothingLoaded):
		return "No model is loaded.", "Choose a folder under Target, then press Load."
	}
	return err.Error(), ""
}

// oneLine is explain in one line.
func oneLine(err error) string {
	what, next := explain(err)
	return strings.TrimSpace(what + " " + next)
}
