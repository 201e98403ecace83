package checkpoint

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stageMark is in the name of every folder and file that is not finished.
const stageMark = ".unfinished-"

func hidden(name string) string { return Hidden(name, stageMark+"*") }

// nameLimit is how many bytes of a name a hidden neighbour takes over: file systems allow 255, and
// marks must fit behind them.
const nameLimit = 200

// Hidden is the name, with mark at its end, of a hidden file or folder beside the one called name.
// It differs for different names and is not too long for a file system where name isn't.
func Hidden(name, mark string) string {
	if len(name) > nameLimit {
		sum := fnv.New64a()
		sum.Write([]byte(name))
		name = fmt.Sprintf("%s-%016x", strings.ToValidUTF8(name[:nameLimit], ""), sum.Sum64())
	}
	return "." + name + mark
}

// Stage is a hidden folder beside the one that it will become, so that a checkpoint appears whole
// or not at all.
type Stage struct {
	Dir   string // to be written into
	final string
}

// NewStage makes a stage for the folder dir. It ends with Commit or Discard.
func NewStage(dir string) (*Stage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, writeError(dir, "", err)
	}
	stage, err := os.MkdirTemp(filepath.Dir(dir), hidden(filepath.Base(dir)))
	if err != nil {
		return nil, writeError(dir, "", err)
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		os.RemoveAll(stage)
		return nil, writeError(dir, "", err)
	}
	return &Stage{stage, dir}, nil
}

// StageOf takes the folder dir, which was written otherwise and lies on the same drive, as a stage
// for the folder final.
func StageOf(dir, final string) (*Stage, error) {
	final, err := filepath.Abs(final)
	if err != nil {
		return nil, writeError(final, "", err)
	}
	return &Stage{dir, final}, nil
}

// Commit gives the folder its name. With replace a folder of that name leaves at the same moment;
// without, one that is there is an error and stays.
func (s *Stage) Commit(replace bool) error {
	if err := syncFolder(s.Dir); err != nil {
		return err
	}
	err := rename(s.Dir, s.final)
	if errors.Is(err, fs.ErrExist) && replace {
		err = exchange(s.Dir, s.final)
	}
	if err != nil {
		return writeError(s.final, "", err)
	}
	// After an exchange it holds what was there before.
	s.Discard()
	return syncFolder(filepath.Dir(s.final))
}

// Discard removes the stage and what is in it; nothing happens where it was committed.
func (s *Stage) Discard() error { return writeError(s.Dir, "", os.RemoveAll(s.Dir)) }

// rename fails with fs.ErrExist when to exists, also as an empty folder.
func rename(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// exchange lets two folders change places, in one step where the drive can.
func exchange(a, b string) error {
	err := swap(a, b)
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return exchangeStepwise(a, b)
}

func exchangeStepwise(a, b string) error {
	aside := a + "-old"
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(aside, b))
	}
	return os.Rename(aside, a)
}

// Unfinished lists what broken-off writing left in dir: stages, and files that were to replace
// others. The caller knows whether anyone still works on them.
func Unfinished(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, FileError(dir, err)
	}
	var left []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), stageMark) {
			left = append(left, filepath.Join(dir, e.Name()))
		}
	}
	return left, nil
}
