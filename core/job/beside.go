package job

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"firesteel/models/checkpoint"
)

// CopyBeside brings what lies beside the weights of the checkpoint from into the folder to:
// settings, vocabulary, chat form, licence, but nothing of these names.
func CopyBeside(ctx context.Context, from, to string, except ...string) error {
	listing, err := checkpoint.List(from)
	if err != nil {
		return err
	}
	for _, name := range listing.Names {
		path := filepath.Join(from, name)
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || !travels(name) || slices.Contains(except, name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyFile(path, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// travels tells whether a file belongs to a copy whose weights are written anew.
func travels(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".safetensors", ".bin", ".gguf", ".pt", ".pth", ".npz", ".onnx", ".h5", ".msgpack":
		return false
	}
	return !strings.HasSuffix(name, ".index.json") && !strings.HasPrefix(name, ".") && !checkpoint.IsPartial(name)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotReadable, Path: from, Err: err}
	}
	defer in.Close()
	out, err := os.Create(to)
	if err == nil {
		if _, err = io.Copy(out, in); err == nil {
			err = out.Sync()
		}
		if closed := out.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: to, Err: err}
	}
	return nil
}
