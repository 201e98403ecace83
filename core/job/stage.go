package job

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"firesteel/models/checkpoint"
)

// lockName is a file in an unfinished folder that its writer holds locked for as long as it lives.
const lockName = ".writing"

// Stage is a hidden folder that a job writes into and that takes its name at the end.
type Stage struct {
	*checkpoint.Stage
	final string
	lock  *os.File
}

// NewStage makes one for the folder dir and notes, in the folder notes, where it is, so that
// RemoveLeftovers finds it should this process be killed. It ends with Finish or Discard.
func NewStage(dir, notes string) (*Stage, error) {
	if err := Note(notes, filepath.Dir(dir)); err != nil {
		return nil, err
	}
	stage, err := checkpoint.NewStage(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(stage.Dir, lockName)
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(&checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: path, Err: err}, stage.Discard())
	}
	return &Stage{stage, dir, lock}, nil
}

// Finish gives the folder its name, in place of an empty folder that has it.
func (s *Stage) Finish() error {
	if err := unix.Rmdir(s.final); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: s.final, Err: err}
	}
	if err := os.Remove(filepath.Join(s.Dir, lockName)); err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: s.Dir, Err: err}
	}
	if err := s.Commit(false); err != nil {
		return err
	}
	return s.lock.Close()
}

// Discard removes what was written. After Finish it does nothing.
func (s *Stage) Discard() error {
	err := s.Stage.Discard()
	s.lock.Close()
	return err
}

// notesName is the file that lists where jobs have been writing.
const notesName = "places.json"

// Notes is the usual folder for notes.
func Notes() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "Firesteel"), nil
}

type places struct {
	Folders []string `json:"folders"`
}

func readPlaces(notes string) places {
	var p places
	if c, err := checkpoint.ReadConfig(filepath.Join(notes, notesName)); err == nil {
		p.Folders, _ = c.Strings("folders")
	}
	return p
}

// Note writes down, in the folder notes, that a job writes into folder, so that RemoveLeftovers looks
// there.
func Note(notes, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	p := readPlaces(notes)
	if slices.Contains(p.Folders, folder) {
		return nil
	}
	if err := os.MkdirAll(notes, 0o700); err != nil {
		return err
	}
	p.Folders = append(p.Folders, folder)
	return checkpoint.WriteJSON(filepath.Join(notes, notesName), p)
}

// RemoveLeftovers removes what jobs of processes that are no more left unfinished, in the places that
// are noted, in the folder notes itself and in the folders in it, and returns how many folders and files
// that were. What a living process writes stays.
func RemoveLeftovers(notes string) (removed int, err error) {
	var errs []error
	folders := append(readPlaces(notes).Folders, notes)
	inside, _ := os.ReadDir(notes)
	for _, e := range inside {
		if e.IsDir() {
			folders = append(folders, filepath.Join(notes, e.Name()))
		}
	}
	for _, folder := range folders {
		left, err := checkpoint.Unfinished(folder)
		if err != nil {
			continue // a drive that is not there now
		}
		for _, path := range left {
			if abandoned(path) {
				errs = append(errs, os.RemoveAll(path))
				removed++
			}
		}
	}
	return removed, errors.Join(errs...)
}

// abandoned tells whether nobody writes at path any more.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		// Single files, and folders that were just begun or are about to get their name, have no lock
		// and are there for moments only.
		unlocked := !info.IsDir() || errors.Is(err, fs.ErrNotExist)
		return unlocked && time.Since(info.ModTime()) > time.Minute
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
