package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Kind says what sort of trouble an Error is, so that it can be put into words elsewhere.
type Kind int

const (
	KindUnknown        Kind = iota
	KindNotFound            // no such folder or file
	KindDangling            // a link that leads to nothing; Detail says to where
	KindNotAFolder          // the path is a file, or not a folder at all
	KindNotReadable         // it exists, but reading is refused or fails (permission, ejected drive, I/O error)
	KindEmpty               // the folder has nothing in it
	KindNotACheckpoint      // the folder holds no config.json and no weights
	KindNoConfig            // weights, but no config.json or dspark.json beside them
	KindNoWeights           // a config.json, but no safetensors weights
	KindIncomplete          // files of the checkpoint are absent, empty or cut short
	KindCorrupt             // a file contradicts itself or its format
	KindBadConfig           // a configuration value is missing or makes no sense
	KindUnsupported         // well-formed, but of a kind that is not handled
	KindArchitecture        // a model family that is not handled; Detail is its name
	KindSuperseded          // a drafter of an old kind that has to be trained again
	KindNotWritable         // it cannot be written (permission, full or ejected drive, I/O error)
	KindMismatch            // tensors and configuration contradict each other
	KindWrongRole           // a drafter where a target is wanted, or the reverse
)

var kindNames = [...]string{"unknown", "not found", "dangling link", "not a folder", "not readable", "empty", "not a checkpoint",
	"no config", "no weights", "incomplete", "corrupt", "bad config", "unsupported", "unknown architecture",
	"superseded", "not writable", "mismatch", "wrong role"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Error is a failure to read or to write a checkpoint.
type Error struct {
	Kind   Kind
	Path   string   // the file or folder concerned
	Tensor string   // the tensor or module concerned, if one is
	Key    string   // the configuration key concerned, if one is
	Detail string   // what is wrong, in a few words
	Files  []string // absent files, for KindIncomplete
	Err    error    // the cause, if another error is
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	if e.Tensor != "" {
		fmt.Fprintf(&b, ": tensor %q", e.Tensor)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, ": %q", e.Key)
	}
	switch {
	case e.Kind == KindArchitecture:
		fmt.Fprintf(&b, ": no code for %s", e.Detail)
	case e.Detail != "":
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + cause(e.Err).Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, KindUnknown when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindUnknown
}

// cause drops the operation and path that a file error repeats.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// FileError wraps an error of the file system about path: KindNotFound, KindDangling where path is a
// link to nothing, else KindNotReadable.
func FileError(path string, err error) *Error {
	if !errors.Is(err, fs.ErrNotExist) {
		return &Error{Kind: KindNotReadable, Path: path, Err: err}
	}
	if to, linkErr := os.Readlink(path); linkErr == nil {
		return &Error{Kind: KindDangling, Path: path, Detail: deadLink(to), Err: err}
	}
	return &Error{Kind: KindNotFound, Path: path, Err: err}
}

func deadLink(to string) string { return "a link to " + to + ", which is not there" }
