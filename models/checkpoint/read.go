package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// readPiece is how much is read before the context is looked at again.
const readPiece = 16 << 20

// shard is one open weights file.
type shard struct {
	io.ReaderAt
	io.Closer
}

// Read fills dst, which must be t.Size bytes long, with the tensor's bytes. It reads in pieces of
// at most 16 MiB and returns ctx's error between them. Any number of goroutines may read at once.
// A file that was cut short or a drive that went away is an *Error naming file and tensor.
func (f *Folder) Read(ctx context.Context, t Tensor, dst []byte) error {
	path := filepath.Join(f.dir, t.File)
	if int64(len(dst)) != t.Size {
		return &Error{Kind: KindMismatch, Path: path, Tensor: t.Name,
			Detail: fmt.Sprintf("%d bytes asked for, it has %d", len(dst), t.Size)}
	}
	s, ok := f.shards[t.File]
	if !ok {
		return &Error{Kind: KindNotFound, Path: path, Tensor: t.Name, Detail: "not a file of this checkpoint"}
	}
	for at := int64(0); at < t.Size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(at+readPiece, t.Size)
		if err := readFull(s, dst[at:end], t.Offset+at); err != nil {
			return readError(path, t.Name, err)
		}
		at = end
	}
	return nil
}

// readFull reads all of b at offset; a file that ends earlier gives io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, b []byte, offset int64) error {
	for len(b) > 0 {
		n, err := r.ReadAt(b, offset)
		b, offset = b[n:], offset+int64(n)
		switch {
		case len(b) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
	}
	return nil
}

func readError(path, tensor string, err error) error {
	e := &Error{Kind: KindNotReadable, Path: path, Tensor: tensor, Err: err}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind, e.Detail, e.Files = KindIncomplete, "the file became shorter while it was read", []string{filepath.Base(path)}
	case errors.Is(err, os.ErrClosed):
		e.Detail = "the checkpoint was closed"
	}
	return e
}
