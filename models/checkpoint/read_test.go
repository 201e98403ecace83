package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// failing reads from r and fails with err where a read reaches byte at.
type failing struct {
	r   io.ReaderAt
	at  int64
	err error
}

func (f failing) ReadAt(b []byte, offset int64) (int, error) {
	if offset+int64(len(b)) <= f.at {
		return f.r.ReadAt(b, offset)
	}
	n := max(0, f.at-offset)
	n64, err := f.r.ReadAt(b[:n], offset)
	if err != nil {
		return n64, err
	}
	return n64, f.err
}

func TestReadFails(t *testing.T) {
	dir := folderOf(t, map[string]string{weightsName: string(pack(t, item{"a", U8, []int{100}, bytes.Repeat([]byte{7}, 100)}))})
	path := filepath.Join(dir, weightsName)
	f := open(t, dir)
	x, _ := f.Tensor("a")
	dst := make([]byte, 100)
	whole := f.shards[weightsName]

	f.shards[weightsName] = shard{failing{whole, x.Offset + 50, syscall.EIO}, whole}
	err := f.Read(context.Background(), x, dst)
	refused(t, err, KindNotReadable, path, `"a"`, "input/output error")
	if !errors.Is(err, syscall.EIO) {
		t.Error("the cause is lost:", err)
	}

	f.shards[weightsName] = whole
	if err := os.Truncate(path, x.Offset+99); err != nil {
		t.Fatal(err)
	}
	refused(t, f.Read(context.Background(), x, dst), KindIncomplete, path, `"a"`, "shorter")
	refused(t, f.Read(context.Background(), x, dst[:50]), KindMismatch, `"a"`)

	f.Close()
	refused(t, f.Read(context.Background(), x, dst), KindNotReadable, path, `"a"`, "closed")
}

// counting counts reads and calls after each.
type counting struct {
	r     io.ReaderAt
	reads int
	most  int
	after func()
}

func (c *counting) ReadAt(b []byte, offset int64) (int, error) {
	c.reads++
	c.most = max(c.most, len(b))
	n, err := c.r.ReadAt(b, offset)
	c.after()
	return n, err
}

func TestReadStopsBetweenPieces(t *testing.T) {
	size := 2*readPiece + 5
	dir := t.TempDir()
	path := filepath.Join(dir, weightsName)
	big := pack(t, item{"a", U8, []int{size}, nil})
	big[len(big)-1], big[len(big)-6] = 9, 8
	if err := os.WriteFile(path, big, 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	if b := readAll(t, f, "a"); b[size-1] != 9 || b[size-6] != 8 {
		t.Error("pieces are put together wrongly")
	}
	x, _ := f.Tensor("a")
	ctx, cancel := context.WithCancel(context.Background())
	c := &counting{r: f.shards[weightsName], after: cancel}
	f.shards[weightsName] = shard{c, f.shards[weightsName]}
	if err := f.Read(ctx, x, make([]byte, size)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if c.reads != 1 || c.most > readPiece {
		t.Errorf("%d reads of up to %d bytes after the stop", c.reads, c.most)
	}
}

func TestReadFromManyGoroutines(t *testing.T) {
	f := open(t, filepath.Join(fixtures, "gemma4-12b-like"))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, name := range f.Names() {
				x, _ := f.Tensor(name)
				if err := f.Read(context.Background(), x, make([]byte, x.Size)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
