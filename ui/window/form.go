package window

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2/widget"
	"golang.org/x/sys/unix"

	"firesteel/core/library"
)

// radio lets a person choose one of labels; the one at index first is chosen to begin with.
func radio(labels []string, first int) *widget.RadioGroup {
	r := widget.NewRadioGroup(labels, nil)
	r.Required = true
	r.SetSelected(labels[first])
	return r
}

// amounts are how much work a job can be given: little, the usual, much.
type amounts []struct {
	label string
	n     int
}

// radio lets a person choose one; the second to begin with.
func (a amounts) radio() *widget.RadioGroup {
	var labels []string
	for _, x := range a {
		labels = append(labels, x.label)
	}
	return radio(labels, 1)
}

// of is the amount that is chosen.
func (a amounts) of(r *widget.RadioGroup) int {
	for _, x := range a {
		if x.label == r.Selected {
			return x.n
		}
	}
	return 0
}

// ownFolder is where models go that the person makes from the built-in ones, in the home folder.
const ownFolder = "Firesteel"

// nameLimit is how many bytes of a model's name a proposed one takes over; drives allow 255 in all.
const nameLimit = 200

// proposed is a folder for what is made of a model: beside it, or, where it came with the app or
// nothing can be put there, in the person's own folder. what tells it from the model; a name that is
// taken gets a number.
func proposed(from library.Description, builtin bool, what string) string {
	parent := filepath.Dir(from.Dir)
	if builtin || path.Base(from.Name) != filepath.Base(from.Dir) || !writable(parent) {
		// Names that differ are those of a hub's cache, whose folders are for the hub's own tools.
		parent = home(filepath.Join("~", ownFolder))
	}
	called := path.Base(from.Name)
	if len(called) > nameLimit {
		called = strings.ToValidUTF8(called[:nameLimit], "")
	}
	base := filepath.Join(parent, called+" "+what)
	name := base
	for i := 2; exists(name); i++ {
		name = fmt.Sprintf("%s (%d)", base, i)
	}
	return name
}

// writable tells whether this process may put something into the folder dir.
func writable(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// home writes ~ out.
func home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == filepath.Separator) {
		if dir, err := os.UserHomeDir(); err == nil {
			return dir + rest
		}
	}
	return path
}
