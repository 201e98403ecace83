package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteAndLast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there yet")
	f := File(dir)
	if text, err := f.Last(100); text != "" || err != nil {
		t.Errorf("read %q, %v where there is nothing", text, err)
	}
	const records = 300 // of 8,000 bytes: a little more than two files
	for i := range records {
		if _, err := fmt.Fprintf(f, "%07999d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int64
	for _, path := range []string{f.before(), f.Path()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	if sizes[0] > limit || sizes[0] < limit-8000 || sizes[1] > limit {
		t.Errorf("the files have %d bytes", sizes)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%d files", len(entries))
	}
	last := func(most int) []string {
		text, err := f.Last(most)
		if err != nil || len(text) > most {
			t.Fatal(len(text), err)
		}
		return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	for most, lines := range map[int]int{8000: 1, 23999: 2, 24000: 3} {
		if got := last(most); len(got) != lines || got[lines-1] != fmt.Sprintf("%07999d", records-1) {
			t.Errorf("the last %d bytes are %q", most, got)
		}
	}
	// Into the file before.
	all := last(limit + 10000)
	for i, line := range all {
		if line != fmt.Sprintf("%07999d", records-len(all)+i) {
			t.Fatalf("line %d of %d is %q", i, len(all), line)
		}
	}
	if int64(len(all))*8000 <= sizes[1] {
		t.Error("nothing of the file before")
	}
	// Taken away: the next record begins anew.
	os.RemoveAll(dir)
	fmt.Fprintln(f, "new")
	if text, err := f.Last(100); text != "new\n" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestNoPlace(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []File{"", File(filepath.Join(taken, "folder"))} {
		if f.Writable() == nil {
			t.Errorf("%q is writable", f)
		}
		if _, err := f.Write([]byte("lost\n")); err == nil {
			t.Errorf("%q took a record", f)
		}
		if _, err := f.Last(100); err == nil {
			t.Errorf("%q was read", f)
		}
	}
}
