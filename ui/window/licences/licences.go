// Package licences holds the licences of everything that ships in the program, as
// scripts/licences.sh collects them.
package licences

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed licences.txt
var collected string

// Licence is what one part of the program is under.
type Licence struct {
	Name    string // a Go module's path, or what else the part is called
	Version string // may be empty
	Text    string // verbatim, in full
}

// All returns Firesteel's own licence, and then those of all other parts by their names. Parts under
// the very same text share it.
func All() []Licence {
	var all []Licence
	unfinished := 0 // where those begin whose text has not come yet
	var text strings.Builder
	finish := func() {
		for i := unfinished; i < len(all); i++ {
			all[i].Text = strings.TrimRight(text.String(), "\n")
		}
		unfinished = len(all)
		text.Reset()
	}
	for line := range strings.Lines(collected) {
		heading, isHeading := strings.CutPrefix(line, "== ")
		if !isHeading {
			if text.Len() > 0 || line != "\n" {
				text.WriteString(line)
			}
			continue
		}
		if text.Len() > 0 {
			finish()
		}
		name, version, _ := strings.Cut(strings.TrimSpace(heading), "@")
		all = append(all, Licence{Name: name, Version: version})
	}
	finish()
	slices.SortStableFunc(all[1:], func(a, b Licence) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return all
}
