package window

import (
	"fmt"
	"log/slog"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
	"github.com/dustin/go-humanize"

	"firesteel/core/calibrate"
	"firesteel/core/confidence"
	"firesteel/core/job"
	"firesteel/core/prompts"
	"firesteel/ui/window/look"
	"firesteel/ui/window/reliability"
	"firesteel/ui/window/sheet"
)

// calibrateForm is what is asked before calibrating.
type calibrateForm struct {
	prompts    *source
	rounds     *widget.RadioGroup
	creativity *widget.RadioGroup
}

// efforts are how many checks can be looked at.
var efforts = amounts{
	{"a quick look: 1,000 checks", 1000},
	{"usual: 4,000 checks", calibrate.DefaultRounds},
	{"thorough: 20,000 checks", 20000},
}

const likeliest = "always the likeliest word"

// calibrate opens the sheet: the running job's, or a new one about the pair that is loaded.
func (w *Window) calibrate() {
	if w.jobs.running() || w.jobs.unseen != nil && w.jobs.unseen == w.jobs.sheet {
		w.jobs.unseen = nil
		w.showSheet()
		return
	}
	loaded := w.models.loaded
	if w.core == nil || loaded.Target == nil || loaded.Drafter == nil {
		return
	}
	w.closeSheet()
	w.jobs.sheet = sheet.New("Calibrate")
	f := &calibrateForm{prompts: w.newSource()}
	w.jobs.calibrating = f
	f.rounds = efforts.radio()
	temperature := w.knobs.temperature.Value()
	slider := fmt.Sprintf("about %.2f, as the slider is set", temperature)
	options := []string{slider, likeliest}
	if confidence.BandOf(temperature) == confidence.Bands[0] {
		options = options[1:]
	}
	f.creativity = radio(options, 0)
	about := look.Sentences(fmt.Sprintf("Finds out how far %s can be trusted when it says how sure it is of a word, and what each caution brings with %s. "+
		"The words stay the target's, only their speed changes.", w.loadedName(drafter), w.loadedName(target)))
	w.jobs.sheet.Show(look.Rows(16,
		look.Tight(about),
		sheet.Field("Prompts", f.prompts.content),
		sheet.Field("How long", look.Tight(f.rounds)),
		sheet.Field("Creativity", look.Tight(f.creativity))),
		w.closing("Close"), sheet.Button{Label: "Calibrate", Pressed: w.beginCalibrating, Main: true})
	w.showSheet()
}

// loadedName is what a loaded model is called.
func (w *Window) loadedName(r role) string {
	if d := w.models.loadedWhat[r]; d != nil {
		return d.Name
	}
	return "the " + r.word()
}

// beginCalibrating begins the job that the form asks for.
func (w *Window) beginCalibrating() {
	f := w.jobs.calibrating
	if f == nil || w.core == nil || w.jobs.running() || w.models.loaded.Target == nil {
		return
	}
	j := calibrate.Job{Temperature: w.knobs.temperature.Value(), Rounds: efforts.of(f.rounds)}
	if f.creativity.Selected == likeliest {
		j.Temperature = 0
	}
	f.prompts.read(w.models.loaded.Target.Dir, func(list []prompts.Prompt) {
		j.Prompts = list
		w.runCalibrating(j)
	})
}

func (w *Window) runCalibrating(j calibrate.Job) {
	core := w.core
	t := w.begin("Calibrating "+w.loadedName(drafter), nil)
	tell := func(p job.Progress) {
		t.tell(p, func() string { return humanize.Comma(p.Done) + " of " + humanize.Comma(p.Total) + " checks" })
	}
	w.spawn(func() {
		defer t.cancel()
		pair, err := calibrate.Pair(core.Loaded())
		var m *confidence.Measured
		if err == nil {
			m, err = calibrate.Run(t.ctx, core, j, tell)
		}
		w.later(func() { w.calibrated(pair, m, err) })
	})
}

func (w *Window) calibrated(pair *confidence.Calibration, m *confidence.Measured, err error) {
	if !w.over(err, ending{doing: "Calibrating", stopped: "Cancelled. Nothing has changed."}, w.again(w.calibrate), w.closing("Close")) {
		return
	}
	s := w.jobs.sheet
	s.Show(reliability.NewView(m).Content, w.closing("Not Now"),
		sheet.Button{Label: "Use It", Main: true, Pressed: func() {
			w.closeSheet()
			w.useCalibration(pair, m)
		}})
	if w.jobs.open == nil {
		w.jobs.unseen = s
	}
	w.say("The drafter is calibrated; Jobs, Calibrate… shows what each caution brings.")
	w.app.SendNotification(fyne.NewNotification("The drafter is calibrated", "See what each caution brings."))
}

// useCalibration keeps what was measured and has texts go by it.
func (w *Window) useCalibration(pair *confidence.Calibration, m *confidence.Measured) {
	core, dir := w.core, w.calibrations()
	w.spawn(func() {
		_, err := pair.Keep(dir, m)
		loaded := core.Loaded()
		if err == nil {
			loaded, err = core.Recalibrate(w.life, dir)
		}
		w.later(func() {
			if err != nil {
				slog.Error("keeping a calibration", "error", err)
				w.say("The calibration could not be kept: " + oneLine(err))
				return
			}
			w.models.loaded = loaded
			w.showKnobs()
			w.say("The calibration is used from now on.")
		})
	})
}
