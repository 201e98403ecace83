// Package family knows which constructor opens which checkpoint. A new family is one folder
// under models and one line here.
package family

import (
	"context"
	"fmt"

	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/decoder"
	"firesteel/models/deepspec"
	"firesteel/models/dflash"
	"firesteel/models/gemma4"
	"firesteel/models/qwen3"
)

// Progress is told the bytes read so far; nil is allowed.
type Progress = func(done int64)

var targets = map[string]func(context.Context, *checkpoint.Folder, Progress) (models.Target, error){
	"gemma4":              openGemma4,
	"gemma4_text":         openGemma4,
	"gemma4_unified":      openGemma4,
	"gemma4_unified_text": openGemma4,
	"qwen3":               openQwen3,
}

var drafters = map[string]func(context.Context, *checkpoint.Folder, models.Target, bool, Progress) (models.Drafter, error){
	"Gemma4DSparkModel": openDeepSpec,
	"Qwen3DSparkModel":  openDeepSpec,
	dspark:              openDFlash,
}

// dspark stands for the drafters that a dspark.json describes, whatever else lies beside it.
const dspark = "DsparkDrafter"

func openGemma4(ctx context.Context, f *checkpoint.Folder, p Progress) (models.Target, error) {
	return target(gemma4.Load(ctx, f, p))
}

func openQwen3(ctx context.Context, f *checkpoint.Folder, p Progress) (models.Target, error) {
	return target(qwen3.Load(ctx, f, p))
}

func openDeepSpec(ctx context.Context, f *checkpoint.Folder, target models.Target, sharing bool, p Progress) (models.Drafter, error) {
	if !sharing {
		target = nil
	}
	d, err := deepspec.Load(ctx, f, target, p)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func openDFlash(ctx context.Context, f *checkpoint.Folder, target models.Target, _ bool, p Progress) (models.Drafter, error) {
	d, err := dflash.Load(ctx, f, target, p)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// target keeps a nil pointer from becoming an interface that is not nil.
func target(t *decoder.Target, err error) (models.Target, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// IsDrafter tells whether folder holds a drafter that OpenDrafter can open.
func IsDrafter(folder *checkpoint.Folder) bool { return drafters[architecture(folder)] != nil }

func architecture(folder *checkpoint.Folder) string {
	if checkpoint.HasDSpark(folder.Dir()) {
		return dspark
	}
	if names, err := folder.Config().Strings("architectures"); err == nil && len(names) > 0 {
		return names[0]
	}
	return ""
}

// OpenTarget loads the target in folder.
func OpenTarget(ctx context.Context, folder *checkpoint.Folder, progress Progress) (models.Target, error) {
	kind, err := folder.Config().String("model_type")
	if err != nil {
		return nil, err
	}
	open := targets[kind]
	if open == nil {
		return nil, &checkpoint.Error{Kind: checkpoint.KindArchitecture, Path: folder.Dir(), Key: "model_type", Detail: fmt.Sprintf("no code for %q", kind)}
	}
	return open(ctx, folder, progress)
}

// OpenDrafter loads the drafter in folder, to draft for target, which must outlive it: a drafter
// may use the target's embedding and head. sharing says that the drafter's own are the same, and
// need not be read. Where only the drafter's own part is wanted, target may be nil.
func OpenDrafter(ctx context.Context, folder *checkpoint.Folder, target models.Target, sharing bool, progress Progress) (models.Drafter, error) {
	open := drafters[architecture(folder)]
	if open == nil {
		return nil, &checkpoint.Error{Kind: checkpoint.KindArchitecture, Path: folder.Dir(), Key: "architectures", Detail: fmt.Sprintf("no code for a drafter of architecture %q", architecture(folder))}
	}
	return open(ctx, folder, target, sharing, progress)
}
