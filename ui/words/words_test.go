package words

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"firesteel/core/engine"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/thread"
	"firesteel/models/chat"
	"firesteel/models/checkpoint"
	"firesteel/models/tokenizer"
)

func TestEveryErrorIsASentence(t *testing.T) {
	var all []error
	for kind := checkpoint.KindUnknown; kind <= checkpoint.KindWrongRole; kind++ {
		all = append(all, &checkpoint.Error{Kind: kind, Path: "/models/x", Tensor: "a.weight", Detail: "some detail"})
	}
	all = append(all,
		&checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: "/models/x", Files: []string{"model-00002-of-00003.safetensors"}},
		&checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: "/models/x", Err: syscall.ENOSPC},
		&library.PairError{Target: "A", Drafter: "B", Field: "hidden size", Want: "64", Got: "32"},
		&library.PairError{Target: "A", Drafter: "B", Field: "role", Want: "drafter", Got: "target"},
		&chat.TemplateError{File: "x", Message: "System role not supported", Refused: true},
		&chat.TemplateError{File: "x", Refused: true}, &chat.TemplateError{File: "x", Message: "bad"},
		&tokenizer.Error{File: "/m/tokenizer.json", Detail: "tokenizer trouble"},
		&engine.PromptTooLongError{Tokens: 5000, Context: 4096}, &engine.GammaError{Gamma: 9, Block: 7},
		engine.ErrNothingLoaded, prompts.ErrNoChats, engine.ErrNotFinite, engine.ErrEmptyPrompt, thread.ErrClosed, &thread.PanicError{Value: "x"},
		context.Canceled, fs.ErrPermission, fs.ErrNotExist, &fs.PathError{Op: "read", Path: "/m", Err: syscall.EIO},
		&fs.PathError{Op: "write", Path: "/m", Err: syscall.ENOSPC}, errors.New("mlx: matmul: tensor shapes"),
	)
	for _, err := range all {
		s := Explain(fmt.Errorf("while loading: %w", err))
		if !strings.HasSuffix(s.What, ".") || strings.Count(s.What, ". ") > 0 {
			t.Errorf("%v: %q is not one sentence", err, s.What)
		}
		for _, word := range []string{"tensor", "shard", "tokenizer ", "OOM", "KV", "logits", "%!"} {
			if strings.Contains(strings.ReplaceAll(s.String(), "safetensors", ""), word) {
				t.Errorf("%v: %q says %q", err, s, word)
			}
		}
		if s.Details == "" {
			t.Errorf("%v: no details", err)
		}
	}
}

func TestFoldersAreNamed(t *testing.T) {
	for _, err := range []error{
		&checkpoint.Error{Kind: checkpoint.KindEmpty, Path: "/models/leer"},
		&checkpoint.Error{Kind: checkpoint.KindNotReadable, Path: "/models/leer"},
		&checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: "/models/leer", Files: []string{"a"}},
		&checkpoint.Error{Kind: checkpoint.KindWrongRole, Path: "/models/leer", Detail: "it is a drafter, not a target"},
	} {
		if s := Explain(err); !strings.Contains(s.What, "leer") || s.Next == "" {
			t.Errorf("%v: %q", err, s)
		}
	}
}

func TestOnlySentencesThatPointToTheDetailsAreOpen(t *testing.T) {
	for err, open := range map[error]bool{
		errors.New("mlx: matmul"):                                   true,
		&thread.PanicError{Value: ""}:                               true,
		engine.ErrEmptyPrompt:                                       false,
		&fs.PathError{Op: "write", Path: "/m", Err: syscall.ENOSPC}: false,
	} {
		if s := Explain(err); s.Open() != open {
			t.Errorf("%v: %q leaves its reader without the details: %v", err, s, s.Open())
		}
	}
}
