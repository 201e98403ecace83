package prompts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"firesteel/core/internal/smalldisk"
	"firesteel/models/chat"
)

func conversation(words ...string) []chat.Message {
	var list []chat.Message
	for i, w := range words {
		list = append(list, chat.Message{Role: []string{"user", "assistant"}[i%2], Content: w})
	}
	return list
}

func TestChatsAreKeptAndReadAndDeleted(t *testing.T) {
	c := ChatsIn(filepath.Join(t.TempDir(), "not there yet"))
	if _, err := c.Load("a"); !errors.Is(err, ErrNoChats) {
		t.Errorf("without a file: %v", err)
	}
	if n, size, err := c.Count(); n != 0 || size != 0 || err != nil {
		t.Errorf("%d in %d bytes, %v", n, size, err)
	}
	if err := errors.Join(c.Add(conversation("Why?\nSo?", "Because."), "a"), c.Add(conversation("Why?\nSo?", "Because.", "Oh?", "Yes."), "b")); err != nil {
		t.Fatal(err)
	}
	list, err := c.Load("b")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if list[0].Answer != "" || list[0].Messages[0].Content != "Why?\nSo?" {
		t.Errorf("another target's answer is taken for its own: %+v", list[0])
	}
	if list[1].Answer != "Yes." || len(list[1].Messages) != 3 {
		t.Errorf("%+v", list[1])
	}
	// Anyone else's reader takes the file as it is.
	if plain, err := Load(string(c)); err != nil || len(plain) != 2 || plain[0].Answer != "Because." {
		t.Errorf("%+v, %v", plain, err)
	}
	if info, err := os.Stat(string(c)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if n, size, err := c.Count(); n != 2 || size == 0 || err != nil {
		t.Errorf("%d in %d bytes, %v", n, size, err)
	}
	if err := errors.Join(c.Delete(), c.Delete()); err != nil {
		t.Error(err)
	}
	if _, err := c.Load("b"); !errors.Is(err, ErrNoChats) {
		t.Errorf("deleted, and yet: %v", err)
	}
}

func TestAPieceOfALineIsOverwritten(t *testing.T) {
	c := ChatsIn(t.TempDir())
	if err := c.Add(conversation("One?", "1."), "a"); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(string(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{`{"messages": [{"ro`, strings.Repeat("x", 1<<17)} {
		if err := os.WriteFile(string(c), append(good, piece...), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := c.Load("a"); err != nil || len(list) != 1 {
			t.Errorf("with %.20q at the end: %v, %v", piece, list, err)
		}
	}
	if err := c.Add(conversation("Two?", "2."), "a"); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Load("a"); err != nil || len(list) != 2 || list[1].Answer != "2." {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.WriteFile(string(c), []byte("a piece alone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load("a"); !errors.Is(err, ErrNoChats) {
		t.Errorf("a piece alone: %v", err)
	}
}

func TestManyWriteAtOnce(t *testing.T) {
	c := ChatsIn(t.TempDir())
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := c.Add(conversation(fmt.Sprint("q", i), strings.Repeat("a", 5000)), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := c.Load("a")
	if err != nil || len(list) != 50 {
		t.Fatalf("%d, %v", len(list), err)
	}
}

func TestAFullDiskTakesNoHalfLine(t *testing.T) {
	c := ChatsIn(smalldisk.New(t, "64k"))
	kept := 0
	for c.Add(conversation("Why?", strings.Repeat("so ", 3000)), "a") == nil {
		kept++
	}
	if list, err := c.Load("a"); err != nil || len(list) != kept || kept == 0 {
		t.Errorf("%d of %d, %v", len(list), kept, err)
	}
	if text, err := os.ReadFile(string(c)); err != nil || text[len(text)-1] != '\n' {
		t.Errorf("half a line is left, %v", err)
	}
}
