// Package settings keeps what the window remembers between runs, in one small file that is
// replaced whole or not at all.
package settings

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// Settings is everything remembered. Pointers are nil until a person has set that value.
type Settings struct {
	Width    float32 `json:"width,omitempty"` // window, in Fyne's pixels
	Height   float32 `json:"height,omitempty"`
	Theme    string  `json:"theme,omitempty"`     // "system", "light" or "dark"
	TextSize int     `json:"text_size,omitempty"` // percent

	Gamma       *int     `json:"words_guessed_ahead,omitempty"`
	Temperature *float64 `json:"creativity,omitempty"`
	Threshold   *float64 `json:"caution,omitempty"`

	// Target and Drafter are the folders chosen last; "" is the pair that comes with the app.
	Target         string   `json:"target,omitempty"`
	Drafter        string   `json:"drafter,omitempty"`
	NoDrafter      bool     `json:"no_drafter,omitempty"` // the person chose to write without one
	RecentTargets  []string `json:"recent_targets,omitempty"`
	RecentDrafters []string `json:"recent_drafters,omitempty"`

	KeepChats bool `json:"keep_chats,omitempty"` // for jobs to learn from
}

// Text sizes that can be chosen, in percent.
var TextSizes = []int{90, 100, 110, 120, 130, 150}

const recentLimit = 6

// Place returns the file that settings live in when nobody names another.
func Place() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "Firesteel", "settings.json"), nil
}

// Load reads the file. A file that is missing gives fresh settings; one that can't be
// understood is set aside as NAME.damaged and gives fresh settings and the error.
func Load(path string) (Settings, error) {
	s := Settings{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.tidy()
		return s, nil
	}
	if err == nil {
		if err = json.Unmarshal(data, &s); err != nil {
			s = Settings{}
			os.Rename(path, path+".damaged")
		}
	}
	s.tidy()
	return s, err
}

// tidy brings every value into the range that the window can show.
func (s *Settings) tidy() {
	if !(s.Width >= 640 && s.Width <= 8000) || !(s.Height >= 480 && s.Height <= 8000) {
		s.Width, s.Height = 1280, 800
	}
	switch s.Theme {
	case "light", "dark":
	default:
		s.Theme = "system"
	}
	if s.TextSize == 0 {
		s.TextSize = 100
	}
	s.TextSize = max(TextSizes[0], min(TextSizes[len(TextSizes)-1], s.TextSize))
	if s.Gamma != nil && (*s.Gamma < 0 || *s.Gamma > 1024) {
		s.Gamma = nil
	}
	if s.Temperature != nil && !(*s.Temperature >= 0 && *s.Temperature <= 2) {
		s.Temperature = nil
	}
	if s.Threshold != nil && !(*s.Threshold >= 0 && *s.Threshold <= 1) {
		s.Threshold = nil
	}
	s.RecentTargets = trim(s.RecentTargets)
	s.RecentDrafters = trim(s.RecentDrafters)
}

func trim(list []string) []string {
	if len(list) > recentLimit {
		list = list[:recentLimit]
	}
	return list
}

// Remember puts dir first in the list, once.
func Remember(list []string, dir string) []string {
	out := []string{dir}
	for _, d := range list {
		if d != dir {
			out = append(out, d)
		}
	}
	return trim(out)
}

// Save writes the file through a neighbour that is synced and then renamed over it.
func (s Settings) Save(path string) error {
	for _, v := range []*float64{s.Temperature, s.Threshold} {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			*v = 0
		}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".settings-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has been renamed
	if _, err = f.Write(append(data, '\n')); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
