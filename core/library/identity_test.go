package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func identity(t testing.TB, dir string) string {
	t.Helper()
	id, err := Identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIdentityIsThatOfTheWeights(t *testing.T) {
	dir := copyOf(t, "gemma4-12b-like", t.TempDir(), nil)
	first := identity(t, dir)
	if again := identity(t, copyOf(t, "gemma4-12b-like", filepath.Join(t.TempDir(), "elsewhere"), nil)); again != first {
		t.Error("a copy counts as another")
	}
	other := identity(t, copyOf(t, "gemma4-12b-like", t.TempDir(), func(c map[string]any) { c["final_logit_softcapping"] = 29.0 }))
	path := filepath.Join(dir, "model.safetensors")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole[len(whole)-1]++
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if trained := identity(t, dir); other == first || trained == first || trained == other || len(first) != 32 {
		t.Errorf("%s, %s with another setting, %s with other weights", first, other, trained)
	}
	if _, err := Identity(t.TempDir()); err == nil {
		t.Error("an empty folder has one")
	}
}

func TestCalibratingADrafterLeavesItsIdentity(t *testing.T) {
	files := map[string]string{"dspark.json": dspark, "model.safetensors": weights(t, map[string][]int{"conf.b": {1}, "conf.w": {48, 1}})}
	first := identity(t, write(t, t.TempDir(), files))
	files["dspark.json"] = strings.Replace(dspark, `"tapLayers"`, `"sts":{"thresholds":[0,0.5],"target":0.5},"tapLayers"`, 1)
	if identity(t, write(t, t.TempDir(), files)) != first {
		t.Error("calibrated, it counts as another")
	}
	files["dspark.json"] = strings.Replace(dspark, `"nHeads":4`, `"nHeads":8`, 1)
	if identity(t, write(t, t.TempDir(), files)) == first {
		t.Error("with other heads, it counts as the same")
	}
}
