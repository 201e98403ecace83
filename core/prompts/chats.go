package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"firesteel/models/chat"
)

// Chats is a file of what a person and a target wrote to each other, kept where the person asked
// for it: a line for each answer, {"messages": what led to it and the answer, "target": who gave
// it}. It is of the form that Read takes. Its methods may be called from any goroutine and from
// several processes at once.
type Chats string

// ChatsIn are the chats kept in the app's folder dir.
func ChatsIn(dir string) Chats { return Chats(filepath.Join(dir, "chats.jsonl")) }

// ErrNoChats means that no chats are kept.
var ErrNoChats = errors.New("no chats are kept")

// line is one answer with what led to it.
type line struct {
	Messages []chat.Message `json:"messages"`
	Target   string         `json:"target,omitempty"`
}

// Add appends a conversation that ends with an answer; target is the identity of who gave it. The
// line is there whole or not at all.
func (c Chats) Add(messages []chat.Message, target string) error {
	text, err := json.Marshal(line{messages, target})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(c)), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(string(c), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return &fs.PathError{Op: "lock", Path: string(c), Err: err}
	}
	end, err := whole(f)
	if err == nil {
		if _, err = f.WriteAt(append(text, '\n'), end); err == nil {
			err = f.Sync()
		}
		if err != nil {
			f.Truncate(end)
		}
	}
	return err
}

// whole is how long f is without the piece of a line that a killed process or a lost current may
// have left at its end; whatever is written next overwrites that.
func whole(f *os.File) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return 0, err
	}
	piece := make([]byte, 1<<16)
	for at := end; at > 0; {
		n := min(at, int64(len(piece)))
		if _, err := f.ReadAt(piece[:n], at-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(piece[:n], '\n'); i >= 0 {
			at = at - n + int64(i) + 1
			return at, f.Truncate(at)
		}
		at -= n
	}
	return 0, f.Truncate(0)
}

// Count is how many answers are kept, and in how many bytes.
func (c Chats) Count() (answers int, bytesKept int64, err error) {
	f, err := os.Open(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	piece := make([]byte, 1<<16)
	for {
		n, err := f.Read(piece)
		answers += bytes.Count(piece[:n], []byte{'\n'})
		bytesKept += int64(n)
		if err == io.EOF {
			return answers, bytesKept, nil
		}
		if err != nil {
			return answers, bytesKept, err
		}
	}
}

// Load returns them as prompts for the target of that identity: answers that another gave are left
// out, so that it writes its own. Without any, it is ErrNoChats.
func (c Chats) Load(target string) ([]Prompt, error) {
	f, err := os.Open(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoChats
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A piece of a line at the end doesn't count.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		return nil, &fs.PathError{Op: "lock", Path: string(c), Err: err}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, ErrNoChats
	}
	list, err := Read(bytes.NewReader(text), string(c))
	for i := range list {
		if list[i].Target != target {
			list[i].Answer = ""
		}
	}
	return list, err
}

// Delete removes all of them.
func (c Chats) Delete() error {
	if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
