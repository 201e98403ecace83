package confidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"firesteel/models/checkpoint"
)

// Model names one model of a pair. Identity tells its very weights, however they are packed and
// wherever they lie; the rest is for people.
type Model struct {
	Identity  string `json:"identity"`
	Name      string `json:"name"`
	Precision string `json:"precision"`
}

// Calibration is what was measured of one pair, by band of temperature.
type Calibration struct {
	Target  Model                `json:"target"`
	Drafter Model                `json:"drafter"`
	Block   int                  `json:"block"`
	Bands   map[string]*Measured `json:"bands"`
}

// Measured is a calibration at one temperature. Curves and thresholds were fitted to the rounds of
// one half of the texts; scores and speeds are those of the other half.
type Measured struct {
	Temperature float64   `json:"temperature"`
	TopP        float64   `json:"top_p,omitempty"` // filters as they were, as in requests
	TopK        int       `json:"top_k,omitempty"`
	MinP        float64   `json:"min_p,omitempty"`
	Device      string    `json:"device,omitempty"`
	Time        time.Time `json:"time"`

	Fitted  int `json:"rounds_fitted"`
	HeldOut int `json:"rounds_held_out"`

	Curves     Curves    `json:"curves"`
	Thresholds []float64 `json:"thresholds"` // for confidences as the drafter tells them
	Pays       bool      `json:"pays"`       // Thresholds are faster than none
	Before     []Score   `json:"before"`
	After      []Score   `json:"after"`
	Costs      Costs     `json:"costs"`
	Speeds     []Speed   `json:"speeds"`
}

// For is the calibration that holds at a temperature; nil where there is none. c may be nil.
func (c *Calibration) For(temperature float64) *Measured {
	if c == nil {
		return nil
	}
	return c.Bands[BandOf(temperature).Name]
}

// Place is the folder that calibrations are kept in when nobody names another.
func Place() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return Under(filepath.Join(dir, "Firesteel")), nil
}

// Under is the folder for calibrations beside the other data of an app that keeps them in dir.
func Under(dir string) string { return filepath.Join(dir, "calibrations") }

func file(dir, target, drafter string) string {
	sum := sha256.Sum256([]byte(target + " " + drafter))
	return filepath.Join(dir, hex.EncodeToString(sum[:10])+".json")
}

// Read returns the calibration of the pair with these identities that is kept in dir; nil, without
// an error, where there is none.
func Read(dir, target, drafter string) (*Calibration, error) {
	path := file(dir, target, drafter)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Calibration{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Target.Identity != target || c.Drafter.Identity != drafter {
		return nil, fmt.Errorf("%s: it is of another pair", path)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// check refuses values that decoding could not go by.
func (c *Calibration) check() error {
	for name, m := range c.Bands {
		if m == nil {
			return fmt.Errorf("band %q is empty", name)
		}
		for _, curve := range m.Curves {
			if !(curve.Sure > 0 && curve.Unsure > 0) || math.IsInf(curve.Sure+curve.Unsure+curve.Shift, 0) || math.IsNaN(curve.Shift) {
				return fmt.Errorf("band %q has a curve %+v", name, curve)
			}
		}
		for _, t := range m.Thresholds {
			if !(t >= 0 && t <= 1) {
				return fmt.Errorf("band %q has a threshold of %g", name, t)
			}
		}
	}
	return nil
}

// Write keeps c in dir, which is made where it is missing. The file changes as a whole or not at all.
func (c *Calibration) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkpoint.WriteJSON(file(dir, c.Target.Identity, c.Drafter.Identity), c)
}

// Keep adds what was measured to what dir holds of the pair of c, in place of an earlier measurement
// in the same band, and returns the whole. What is there but can't be read is replaced.
func (c *Calibration) Keep(dir string, m *Measured) (*Calibration, error) {
	whole, err := Read(dir, c.Target.Identity, c.Drafter.Identity)
	if whole == nil || err != nil || whole.Bands == nil {
		whole = &Calibration{Bands: map[string]*Measured{}}
	}
	whole.Target, whole.Drafter, whole.Block = c.Target, c.Drafter, c.Block
	whole.Bands[BandOf(m.Temperature).Name] = m
	return whole, whole.Write(dir)
}

// Fit fills m in from the rounds to fit to and those to judge by. The first kept drafts of a
// round are checked however unsure they are.
func (m *Measured) Fit(fitted, held []Sample, block, kept int) {
	m.Curves = Fit(fitted, block)
	m.Before, m.After = Judge(held, nil, block), Judge(held, m.Curves, block)
	m.Thresholds = Thresholds(fitted, block, kept, Worth)
	m.Speeds = nil
	for i := range 10 {
		t := float64(i) / 10
		s := Predict(held, m.Curves.Back(t, block), kept, m.Costs)
		s.Threshold = t
		m.Speeds = append(m.Speeds, s)
	}
	own := Predict(held, m.Thresholds, kept, m.Costs)
	own.Slots = true
	m.Speeds = append(m.Speeds, own)
	m.Pays = own.PerSecond > m.Speeds[0].PerSecond
}

// Asked is what each slot's confidence, as the drafter tells it, must reach. threshold is what a
// person set, on confidences as m tells them; nil leaves it to m.
func (m *Measured) Asked(threshold *float64, block int) []float64 {
	switch {
	case threshold != nil && *threshold > 0:
		return m.Curves.Back(*threshold, block)
	case threshold == nil && m.Pays:
		return m.Thresholds
	}
	return nil
}
