package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"firesteel/models/checkpoint"
)

// identityPiece is how many bytes count at the beginning, in the middle and at the end of each
// tensor: enough that training or packing a tensor shows, few enough that every start can look.
const identityPiece = 1024

// Identity names the weights in the folder dir, the same wherever the folder lies and whatever it
// is called: it is made of the configuration and, of each tensor, the name, type, shape and some
// of the bytes. How a drafter was calibrated, which its dspark.json may say, does not count.
func Identity(dir string) (string, error) {
	f, err := checkpoint.Open(dir)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for _, name := range []string{"config.json", "dspark.json"} {
		text, err := configuration(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s\n", name, len(text), text)
	}
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		fmt.Fprintf(h, "%q %s %v\n", name, t.DType, t.Shape)
		for _, at := range []int64{0, (t.Size - identityPiece) / 2, t.Size - identityPiece} {
			part := t
			at = max(at, 0)
			part.Offset, part.Size = t.Offset+at, min(identityPiece, t.Size-at)
			piece := make([]byte, part.Size)
			if err := f.Read(context.Background(), part, piece); err != nil {
				return "", err
			}
			h.Write(piece)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// configuration is a file of settings in one spelling, "" where there is none.
func configuration(path string) (string, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", checkpoint.FileError(path, err)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(text), "\ufeff")), &fields); err != nil {
		return "", &checkpoint.Error{Kind: checkpoint.KindCorrupt, Path: path, Err: err}
	}
	if config, ok := fields["config"].(map[string]any); ok {
		delete(config, "sts")
	}
	plain, err := json.Marshal(fields)
	return string(plain), err
}
