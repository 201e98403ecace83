// Package logfile keeps a log in a file of limited size, and the one before it when that was full.
package logfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// limit is how many bytes a file may have before the next is begun.
const limit = 1 << 20

// ErrNoFolder is returned where there is no folder to keep a log in.
var ErrNoFolder = errors.New("there is no folder to keep a log in")

// File is the log in one folder; "" keeps none. It is opened anew for each record, so that other
// processes may write to it too and a person may move it away at any time.
type File string

// Path is where the log is; "" when there is none.
func (f File) Path() string { return f.name("log.txt") }

func (f File) before() string { return f.name("log-before.txt") }

func (f File) name(base string) string {
	if f == "" {
		return ""
	}
	return filepath.Join(string(f), base)
}

// Write adds a record, which ends with a line break.
func (f File) Write(record []byte) (int, error) {
	file, size, err := f.open()
	if err == nil && size > 0 && size+int64(len(record)) > limit {
		file.Close()
		if err = os.Rename(f.Path(), f.before()); err == nil {
			file, _, err = f.open()
		}
	}
	if err != nil {
		return 0, err
	}
	n, err := file.Write(record)
	if e := file.Close(); err == nil {
		err = e
	}
	return n, err
}

// open opens the file for a record, and makes it and its folder where they are missing.
func (f File) open() (file *os.File, size int64, err error) {
	if f == "" {
		return nil, 0, ErrNoFolder
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, 0, err
	}
	file, err = os.OpenFile(f.Path(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// Writable tells why nothing can be logged; nil when it can.
func (f File) Writable() error {
	file, _, err := f.open()
	if err != nil {
		return err
	}
	return file.Close()
}

// Last returns the newest whole lines, at most so many bytes of them.
func (f File) Last(most int) (string, error) {
	if f == "" {
		return "", ErrNoFolder
	}
	text, err := end(f.Path(), most)
	if err == nil && len(text) < most {
		var older []byte
		older, err = end(f.before(), most-len(text))
		text = append(older, text...)
	}
	return string(text), err
}

// end returns the last whole lines of a file, at most so many bytes; nothing of one that is missing.
func end(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// One byte more tells whether the first line is whole.
	from := max(0, info.Size()-int64(most)-1)
	text, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text, err
}
