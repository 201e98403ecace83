package window

import (
	"fmt"
	"slices"

	"fyne.io/fyne/v2"

	"firesteel/core/engine"
	"firesteel/ui/window/knob"
	"firesteel/ui/window/look"
)

const (
	usualTemperature = 0.7
	quantizedGamma   = 4 // words guessed ahead at first when the target isn't full precision
)

func (w *Window) makeKnobs() fyne.CanvasObject {
	k := &w.knobs
	k.gamma = knob.New(knob.Kind{
		Name: "Words guessed ahead", Symbol: "γ", Min: 1, Max: 7, Step: 1,
		Help: "How many words the drafter guesses before the target checks them all at once; the text stays the target's, only its speed changes.",
		Say:  w.gammaWords,
	}, w.hints)
	k.temperature = knob.New(knob.Kind{
		Name: "Creativity", Symbol: "temperature", Min: 0, Max: 2, Step: 0.05, Decimals: 2,
		Help: "How freely the next word is picked: at 0 the same prompt gives the same text, above 1 it becomes wild.",
		Say: func(v float64) string {
			switch {
			case v == 0:
				return "always the likeliest word"
			case v < 0.5:
				return "close to the likeliest words"
			case v <= 1:
				return "lively"
			}
			return "wild"
		},
	}, w.hints)
	k.threshold = knob.New(knob.Kind{
		Name: "Caution", Symbol: "threshold", Min: 0, Max: 1, Step: 0.05, Decimals: 2,
		Help: "How sure the drafter must be of a word before the target checks it; more caution wastes fewer guesses, the text stays the same.",
		Say:  w.cautionWords,
	}, w.hints)
	k.gamma.OnChanged = func(v float64) {
		n := int(v)
		w.settings.Gamma = &n
		w.knobMoved()
	}
	k.temperature.OnChanged = func(v float64) {
		w.settings.Temperature = &v
		w.showCaution()
		w.knobMoved()
	}
	k.threshold.OnChanged = func(v float64) {
		w.settings.Threshold = &v
		w.knobMoved()
	}
	reset := look.NewTextButton("Reset", w.resetKnobs)
	reset.Quiet = true
	return look.Rows(10, k.gamma, k.temperature, k.threshold, look.Pad(0, 0, 0, -look.Unit, look.Line(0, 0, look.Caption(""), reset)))
}

func (w *Window) gammaWords(v float64) string {
	switch d := w.models.loaded.Drafter; {
	case v == 1:
		return "one word, then a check"
	case d != nil && int(v) >= d.Block:
		return "as far as the drafter can"
	}
	return fmt.Sprintf("%.0f words, then a check", v)
}

func (w *Window) cautionWords(v float64) string {
	if own, calibrated := w.ownThresholds(); w.settings.Threshold == nil && own != nil {
		if calibrated {
			return "as calibrated, word by word"
		}
		return "as the drafter was tuned, word by word"
	}
	switch {
	case v == 0:
		return "every guess is checked"
	}
	return fmt.Sprintf("guesses stop below %.0f %% sure", 100*v)
}

// ownThresholds are those that hold at the creativity set while no caution is: what was calibrated,
// or what came with the drafter. nil without any.
func (w *Window) ownThresholds() (list []float64, calibrated bool) {
	d := w.models.loaded.Drafter
	if d == nil {
		return nil, false
	}
	list = d.Thresholds
	if m := w.models.loaded.Calibration.For(w.knobs.temperature.Value()); m != nil {
		list, calibrated = m.Asked(nil, d.Block), true
	}
	if len(list) == 0 || slices.Max(list) <= 0 {
		return nil, calibrated
	}
	return list, calibrated
}

// showCaution puts its slider where it belongs.
func (w *Window) showCaution() {
	threshold := 0.0
	if own, _ := w.ownThresholds(); own != nil {
		threshold = min(1, slices.Max(own))
	}
	if w.settings.Threshold != nil {
		threshold = *w.settings.Threshold
	}
	w.knobs.threshold.Set(threshold)
}

func (w *Window) knobMoved() {
	w.applyKnobs()
	w.save()
	if w.writing.turn != nil {
		w.say("Takes effect from the next check.")
	}
}

func (w *Window) resetKnobs() {
	w.settings.Gamma, w.settings.Temperature, w.settings.Threshold = nil, nil, nil
	w.showKnobs()
	w.knobMoved()
}

// showKnobs puts the sliders where they belong for what is loaded: a person's choice, else
// the model's recommendation, else ours.
func (w *Window) showKnobs() {
	k, loaded := &w.knobs, w.models.loaded
	drafter := loaded.Drafter
	block := 7
	if drafter != nil && drafter.Block > 0 {
		block = drafter.Block
	}
	gamma := block
	if loaded.Target != nil && quantized(loaded.Target.Precision) {
		gamma = min(block, quantizedGamma)
	}
	if w.settings.Gamma != nil {
		gamma = *w.settings.Gamma
	}
	temperature := usualTemperature
	if t := w.recommended().Temperature; t != nil {
		temperature = min(2, max(0, *t))
	}
	if w.settings.Temperature != nil {
		temperature = *w.settings.Temperature
	}
	k.gamma.SetMax(float64(block))
	k.gamma.Set(float64(gamma))
	k.temperature.Set(temperature)
	w.showCaution()
	switch {
	case drafter == nil && loaded.Target != nil:
		k.gamma.Turn(false, "no drafter: one word at a time")
		k.threshold.Turn(false, "no drafter")
	case drafter != nil && !drafter.HasThreshold:
		k.gamma.Turn(true, "")
		k.threshold.Turn(false, "this drafter doesn't say how sure it is")
	default:
		k.gamma.Turn(true, "")
		k.threshold.Turn(true, "")
	}
	w.applyKnobs()
}

// quantized says whether a precision in words means fewer bits than the model was made with.
func quantized(precision string) bool {
	return precision != "" && precision != "bf16" && precision != "f16" && precision != "f32"
}

// applyKnobs hands the sliders' values to the running request and the next ones.
func (w *Window) applyKnobs() {
	k := engine.Knobs{Temperature: w.knobs.temperature.Value()}
	if w.models.loaded.Drafter != nil {
		k.Gamma = int(w.knobs.gamma.Value())
		// Until a person moves it, the drafter's own thresholds hold, if it brings any.
		if w.knobs.threshold.On() && w.settings.Threshold != nil {
			k.Threshold = new(w.knobs.threshold.Value())
		}
	}
	w.controls.Set(k)
}
