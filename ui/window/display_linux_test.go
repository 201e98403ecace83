package window

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestNoDisplay(t *testing.T) {
	for _, name := range []string{"", "nonsense", ":x", ":98765"} {
		t.Setenv("DISPLAY", name)
		c, err := openDisplay()
		var none *DisplayError
		if c != nil || !errors.As(err, &none) || none.Display != name {
			t.Errorf("DISPLAY=%q: %v", name, err)
		}
	}
}

func TestGreet(t *testing.T) {
	// One entry for display 7, as xauth writes it: local, host "here".
	entry := "\x01\x00\x00\x04here\x00\x017\x00\x12MIT-MAGIC-COOKIE-1\x00\x04abcd"
	path := filepath.Join(t.TempDir(), "authority")
	if err := os.WriteFile(path, []byte("\x00\x00\x00\x00\x00\x018\x00\x00\x00\x00"+entry), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XAUTHORITY", path)
	if got := string(cookie("7")); got != "abcd" {
		t.Fatalf("cookie %q", got)
	}
	if cookie("9") != nil {
		t.Error("a secret for another display")
	}
	for answer, want := range map[byte]bool{1: true, 0: false, 2: false} {
		ours, theirs := net.Pipe()
		go func() {
			hello := make([]byte, 12+20+4)
			io.ReadFull(theirs, hello)
			if string(hello[12:30]) != "MIT-MAGIC-COOKIE-1" || string(hello[32:]) != "abcd" {
				theirs.Close()
				return
			}
			theirs.Write([]byte{answer, 0, 11, 0, 0, 0, 0, 0})
		}()
		if err := greet(ours, cookie("7")); (err == nil) != want {
			t.Errorf("answer %d: %v", answer, err)
		}
	}
}
