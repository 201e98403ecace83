package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestKeepAndLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there yet")
	if _, forget := Left(dir); forget != nil {
		t.Error("found something where there is nothing")
	}
	j := In(dir)
	page := Page{Prompt: "p", Answer: "half", Model: "m", When: time.Now()}
	if err := j.Keep(2, page); err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(1, Page{Answer: "older"}); err != nil {
		t.Fatal(err)
	}
	// Another process's page, still alive: our parent's.
	if err := os.Link(j.path, name(dir, os.Getppid())); err != nil {
		t.Fatal(err)
	}
	got, forget := Left(dir)
	if forget == nil || got.Answer != "half" || got.Prompt != "p" {
		t.Fatalf("left: %+v", got)
	}
	forget()
	if _, forget := Left(dir); forget != nil {
		t.Error("forgotten, and yet offered")
	}
	if _, err := os.Stat(name(dir, os.Getppid())); err != nil {
		t.Error("the page of a living process was removed")
	}
	if err := j.Keep(3, page); err != nil {
		t.Fatal(err)
	}
	if err := j.Clear(4); err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(3, page); err != nil {
		t.Fatal(err)
	}
	if _, forget := Left(dir); forget != nil {
		t.Error("an older change came back")
	}
	os.WriteFile(name(dir, 999999999), []byte("{"), 0o600)
	if _, forget := Left(dir); forget != nil {
		t.Error("a damaged page was offered")
	}
}
