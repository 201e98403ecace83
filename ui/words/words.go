// Package words turns errors into plain sentences: what happened, to which folder, and what
// to do about it. Terms of the trade stay in the error itself, for those who open the details.
package words

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"

	"firesteel/core/calibrate"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/quantize"
	"firesteel/core/thread"
	"firesteel/core/train"
	"firesteel/models/chat"
	"firesteel/models/checkpoint"
	"firesteel/models/tokenizer"
)

// Sentence is an error in words.
type Sentence struct {
	What    string // one sentence: what happened
	Next    string // what to do; may be empty
	Details string // the error itself
}

func (s Sentence) String() string {
	if s.Next == "" {
		return s.What
	}
	return s.What + " " + s.Next
}

// Open says that the sentence alone helps nobody: the details have to be shown too.
func (s Sentence) Open() bool { return strings.Contains(s.Next, "details") }

// Explain puts err into words. It must not be nil.
func Explain(err error) Sentence {
	what, next := explain(err)
	return Sentence{what, next, err.Error()}
}

func explain(err error) (what, next string) {
	var folder *checkpoint.Error
	var pair *library.PairError
	var long *engine.PromptTooLongError
	var gamma *engine.GammaError
	var template *chat.TemplateError
	var vocabulary *tokenizer.Error
	var broken *thread.PanicError
	var path *fs.PathError
	var refused *quantize.RefusedError
	var room *job.RoomError
	var wrong *quantize.VerifyError
	var prompt *prompts.Error
	var few *calibrate.TooFewError
	switch {
	case errors.Is(err, context.Canceled):
		return "Stopped.", ""
	case errors.Is(err, syscall.ENOSPC):
		return "The disk is full.", "Make some room, then try again."
	case errors.As(err, &room):
		return fmt.Sprintf("There is not enough room in %s: %s is needed, %s is free.", room.Folder, humanize.Bytes(uint64(room.Need)), humanize.Bytes(uint64(room.Free))),
			"Make room, or choose another place."
	case errors.As(err, &refused):
		return aboutQuantizing(refused)
	case errors.As(err, &wrong):
		return "The smaller copy did not come out right, so it was removed; the model is as it was.", "Try again, perhaps on another drive. The details say more."
	case errors.As(err, &pair):
		return aboutPair(pair)
	case errors.Is(err, train.ErrBegun):
		return "A training for this folder was begun and stopped before its end.", "Go on with it, or begin anew in its place."
	case errors.Is(err, train.ErrNothingBegun):
		return "There is no stopped training for this folder to go on with.", "Begin one, or check the folder's name."
	case errors.Is(err, train.ErrOther):
		return "The training that was stopped is another one: its model, its prompts or its settings differ.", "Use those it was begun with, or begin anew in its place."
	case errors.Is(err, train.ErrNoTexts):
		return "None of the answers is long enough to learn from.", "Use more prompts, or such as call for longer answers."
	case errors.Is(err, train.ErrPacked):
		return "This drafter's heads are quantized, and quantized weights can't learn.", "Tune the drafter in full precision, then quantize it."
	case errors.Is(err, train.ErrNoHeads):
		return "This drafter has no heads that could learn.", "Choose another drafter, or tune more of it: heads+fc."
	case errors.Is(err, train.ErrDiverged):
		return "The training went astray: its numbers are not finite any more. What was best before is kept.", "Begin anew with a lower learning rate."
	case errors.As(err, &folder):
		return aboutFolder(folder)
	case errors.As(err, &template):
		return aboutTemplate(template)
	case errors.As(err, &vocabulary):
		return fmt.Sprintf("The file %s in this model's folder is damaged or of a kind that Firesteel does not know.", filepath.Base(vocabulary.File)), again
	case errors.As(err, &long):
		return fmt.Sprintf("The text is too long: this model reads about %s words at once, and this is about %s.", about(long.Context), about(long.Tokens)),
			"Shorten it, or start a new chat."
	case errors.As(err, &gamma):
		return fmt.Sprintf("This drafter guesses 1 to %d words ahead, not %d.", gamma.Block, gamma.Gamma), "Choose a number in that range."
	case errors.Is(err, engine.ErrNothingLoaded):
		return "No model is loaded.", "Choose a folder under Target, then press Load."
	case errors.Is(err, engine.ErrEmptyPrompt):
		return "There is nothing to go on from.", "Write something first."
	case errors.Is(err, engine.ErrNotFinite):
		return "The model computed values that make no sense, so the text was ended here.", "Try it again; if that happens every time, the model's files may be damaged: get them again."
	case errors.Is(err, prompts.ErrNoChats):
		return "No chats are kept yet.", "Turn on “Keep my chats” in the window's settings and chat for a while, or choose other prompts."
	case errors.As(err, &prompt):
		return aboutPrompts(prompt)
	case errors.As(err, &few):
		return fmt.Sprintf("The prompts gave %d checks, too few to learn from.", few.Rounds), "Choose a file with more prompts."
	case errors.Is(err, calibrate.ErrNoDrafter):
		return "There is nothing to calibrate: no drafter is loaded.", "Choose a folder under Drafter, then press Load."
	case errors.Is(err, calibrate.ErrNoConfidence):
		return "This drafter does not say how sure it is, so there is nothing to calibrate.", "Choose a drafter that does."
	case errors.Is(err, calibrate.ErrChanged):
		return "Other models were loaded meanwhile, so calibrating was ended.", "Load the pair, then start again."
	case errors.Is(err, calibrate.ErrNoPlace):
		return "Only a DFlash drafter, one with a dspark.json, has a place for thresholds in its folder.",
			"Calibrate without writing them there: Firesteel keeps them itself and uses them whenever this pair is loaded."
	case errors.Is(err, calibrate.ErrCalibrated):
		return "The drafter's folder holds thresholds already.", "To replace them, add --force."
	case errors.Is(err, thread.ErrClosed):
		return "Firesteel is closing.", ""
	case errors.As(err, &broken):
		return "Something inside Firesteel went wrong; what was written is kept.", "Try again. If it happens every time, send the details to the makers."
	case errors.Is(err, fs.ErrPermission):
		return "Firesteel is not allowed to open " + named(err, "this") + ".", "Change who may read it, or choose another place."
	case errors.Is(err, fs.ErrNotExist):
		return "There is nothing at " + named(err, "this place") + ".", "Check the name, or choose another."
	case errors.As(err, &path):
		return "Reading " + path.Path + " failed.", "If it is on another drive, see that it is still connected."
	}
	return "The model could not go on; what was written is kept.", "Try again. The details say more."
}

const again = "Get the model again, or choose another folder."

// about rounds a count so that it reads as the estimate it is: a token is some ¾ of a word.
func about(tokens int) string {
	words := tokens * 3 / 4
	for _, step := range []int{10, 100, 1000, 10000} {
		if words >= step*20 {
			words = words / step * step
		}
	}
	return fmt.Sprint(words)
}

func named(err error, otherwise string) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path
	}
	return otherwise
}

func aboutFolder(e *checkpoint.Error) (what, next string) {
	place := e.Path
	switch e.Kind {
	case checkpoint.KindNotFound:
		return fmt.Sprintf("There is nothing at %s.", place), "Check the name, or choose another folder."
	case checkpoint.KindDangling:
		return fmt.Sprintf("%s is a link, and what it leads to is not there.", place), "If it leads to another drive, connect that drive; otherwise get the model again."
	case checkpoint.KindNotAFolder:
		return fmt.Sprintf("%s is a file, not a model's folder.", place), "Choose the folder that holds it."
	case checkpoint.KindNotReadable:
		return fmt.Sprintf("%s can't be read.", place), "See that you may open it and, if it is on another drive, that the drive is connected."
	case checkpoint.KindNotWritable:
		if errors.Is(e, syscall.ENOSPC) {
			return fmt.Sprintf("There is not enough room on the disk to write %s.", place), "Make room, or choose another place."
		}
		return fmt.Sprintf("%s can't be written.", place), "See that you may write there and, if it is on another drive, that the drive is connected."
	case checkpoint.KindEmpty:
		return fmt.Sprintf("The folder %s is empty.", place), "Choose a folder with a model in it."
	case checkpoint.KindNotACheckpoint, checkpoint.KindNoConfig:
		return fmt.Sprintf("The folder %s does not hold a model.", place), "A model's folder has a config.json and .safetensors files; choose one of those."
	case checkpoint.KindNoWeights:
		return fmt.Sprintf("The folder %s describes a model, but the model's files are missing.", place), "Download them, or choose another folder."
	case checkpoint.KindIncomplete:
		if len(e.Files) > 0 {
			return fmt.Sprintf("The model in %s is incomplete: %s %s missing.", place, strings.Join(e.Files, ", "), isAre(len(e.Files))), "The download may not have finished; get these files again."
		}
		return fmt.Sprintf("The model in %s is incomplete.", place), "The download may not have finished; get it again."
	case checkpoint.KindCorrupt:
		return fmt.Sprintf("%s is damaged.", place), again
	case checkpoint.KindBadConfig, checkpoint.KindMismatch:
		return fmt.Sprintf("The files of the model in %s contradict each other.", filepath.Dir(place)), again
	case checkpoint.KindSuperseded:
		return fmt.Sprintf("The drafter in %s is of an old kind (version 1) that is superseded.", place), "It has to be trained again."
	case checkpoint.KindArchitecture:
		return fmt.Sprintf("Firesteel does not know this kind of model yet: %s, in %s.", e.Detail, place), "Choose another; the README lists what opens."
	case checkpoint.KindUnsupported:
		return fmt.Sprintf("The model in %s is stored in a way that Firesteel does not know.", place), "Choose another form of it; the README lists what opens."
	case checkpoint.KindWrongRole:
		return wrongRole(e)
	}
	return fmt.Sprintf("The model in %s can't be opened.", place), again
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func wrongRole(e *checkpoint.Error) (what, next string) {
	if strings.Contains(e.Detail, "a drafter, not") {
		return fmt.Sprintf("%s is a drafter: it guesses ahead for another model and can't write by itself.", e.Path), "Choose it under Drafter, and a model under Target."
	}
	return fmt.Sprintf("%s is a model that writes, not a drafter.", e.Path), "Choose it under Target."
}

func aboutPair(e *library.PairError) (what, next string) {
	if e.Field == "role" {
		if e.Want == string(library.Drafter) {
			return fmt.Sprintf("%s is a model that writes, not a drafter.", e.Drafter), "Choose it under Target."
		}
		return fmt.Sprintf("%s is a drafter and can't write by itself.", e.Target), "Choose it under Drafter, and a model under Target."
	}
	field := map[string]string{
		"family": "kind of model", "hidden size": "width", "taps": "count of layers to listen to", "layers": "number of layers", "mask token": "list of words",
		"vocabulary": "list of words",
	}[e.Field]
	if field == "" {
		field = e.Field
	}
	return fmt.Sprintf("The drafter %s was not made for %s: its %s differs (made for %s, this has %s).", e.Drafter, e.Target, field, e.Want, e.Got),
		"Choose the drafter that goes with this model, or none."
}

func aboutQuantizing(e *quantize.RefusedError) (what, next string) {
	switch e.Reason {
	case quantize.AlreadyQuantized:
		return fmt.Sprintf("%s is quantized already.", e.Path), "Start from the full model that it was made of."
	case quantize.SmallDrafter:
		return fmt.Sprintf("%s is a trained drafter, which is small as it is.", e.Path), "There is nothing to do."
	case quantize.SourceItself:
		return "The smaller copy can't take the place of the model it is made from.", "Choose another folder for it."
	case quantize.InsideSource:
		return fmt.Sprintf("%s lies inside the model's own folder.", e.Path), "Choose a folder beside it."
	case quantize.DestinationTaken:
		return fmt.Sprintf("There is something in %s already.", e.Path), "Choose another name, or an empty folder."
	case quantize.NotWritable:
		return fmt.Sprintf("%s can't be written to.", e.Path), "Choose another place, or see that you may write there."
	case quantize.NothingToPack:
		return fmt.Sprintf("Nothing in %s can be made smaller this way.", e.Path), "Choose another model."
	case quantize.RecommendedIsMixed:
		return "The recommended recipe mixes precisions, which this mode can't.", "Choose the affine mode, or the uniform recipe."
	}
	return fmt.Sprintf("This combination is not possible: %s.", e.Detail), "Choose bits and group among those offered."
}

func aboutPrompts(e *prompts.Error) (what, next string) {
	const form = "A file of prompts has one on each line: text, or JSON with \"prompt\", \"p\" or \"messages\"."
	if e.Line == 0 {
		return fmt.Sprintf("There is no prompt in %s.", e.Path), form
	}
	return fmt.Sprintf("Line %d of %s is no prompt: %s.", e.Line, e.Path, e.Detail), form
}

func aboutTemplate(e *chat.TemplateError) (what, next string) {
	if e.Refused && e.Message != "" {
		return fmt.Sprintf("The model's chat rules refuse this conversation: “%s”.", strings.TrimRight(e.Message, ".")), "Change the text, or start a new chat."
	}
	if e.Refused {
		return "The model's chat rules refuse this conversation.", "Change the text, or start a new chat."
	}
	return fmt.Sprintf("The model's chat rules in %s can't be used.", e.File), again
}
