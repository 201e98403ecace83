package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// three returns the files of a model in three shards with its index.
func three(t testing.TB) map[string]string {
	files := map[string]string{"config.json": `{}`}
	var lines []string
	for i := 1; i <= 3; i++ {
		shard := fmt.Sprintf("model-%05d-of-00003.safetensors", i)
		name := fmt.Sprintf("t%d", i)
		files[shard] = string(pack(t, item{name, U8, []int{2}, []byte{byte(i), byte(10 * i)}}))
		lines = append(lines, fmt.Sprintf("%q:%q", name, shard))
	}
	files[indexName] = `{"metadata":{"total_size":6},"weight_map":{` + strings.Join(lines, ",") + `}}`
	return files
}

func without(files map[string]string, names ...string) map[string]string {
	for _, name := range names {
		delete(files, name)
	}
	return files
}

func TestOpenFixtures(t *testing.T) {
	for _, name := range []string{"gemma4-12b-like", "gemma4-12b-like-q4", "deepspec-gemma4", "deepspec-gemma4-q4", "deepspec-gemma4-mixed"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(fixtures, name)
			f := open(t, dir)
			if len(f.Names()) == 0 || !slices.IsSorted(f.Names()) {
				t.Errorf("names %v", f.Names())
			}
			if _, ok := f.Tensor("input_ids"); ok {
				t.Error("the reference values were taken for weights")
			}
			var sum int64
			for _, n := range f.Names() {
				sum += int64(len(readAll(t, f, n)))
			}
			if sum != f.Bytes() {
				t.Errorf("read %d bytes, Bytes says %d", sum, f.Bytes())
			}
			if n, err := f.Config().Int("hidden_size"); n != 64 || err != nil {
				t.Error(n, err)
			}
		})
	}
}

func TestGoldenAloneIsNotWeights(t *testing.T) {
	dir := folderOf(t, map[string]string{"config.json": `{}`, goldenName: string(pack(t, item{"a", U8, []int{1}, nil}))})
	_, err := Open(dir)
	refused(t, err, KindNoWeights, dir)
}

func TestShards(t *testing.T) {
	f := open(t, folderOf(t, three(t)))
	for i := 1; i <= 3; i++ {
		if b := readAll(t, f, fmt.Sprintf("t%d", i)); b[0] != byte(i) || b[1] != byte(10*i) {
			t.Errorf("t%d is %v", i, b)
		}
	}
	if f.Bytes() != 6 {
		t.Error(f.Bytes())
	}
	// The same without an index.
	if f := open(t, folderOf(t, without(three(t), indexName))); len(f.Names()) != 3 {
		t.Error(f.Names())
	}
}

func TestMissingShards(t *testing.T) {
	second, third := "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors"
	for name, c := range map[string]struct {
		change func(map[string]string)
		files  []string
		parts  []string
	}{
		"one absent":  {func(f map[string]string) { delete(f, second) }, []string{second}, nil},
		"two absent":  {func(f map[string]string) { delete(f, second); delete(f, third) }, []string{second, third}, nil},
		"of no bytes": {func(f map[string]string) { f[second] = "" }, []string{second}, []string{"empty"}},
		"wrong case": {func(f map[string]string) {
			f["Model-00002-of-00003.safetensors"] = f[second]
			delete(f, second)
		}, []string{second}, []string{"the folder has Model-00002-of-00003.safetensors"}},
		"a .part beside it": {func(f map[string]string) {
			f[second+".part"] = f[second]
			delete(f, second)
		}, []string{second}, []string{second + ".part", "unfinished download"}},
		"an .incomplete of the hub's tools": {func(f map[string]string) {
			f[".cache/huggingface/download/x.abc.incomplete"] = "."
			delete(f, second)
		}, []string{second}, []string{"x.abc.incomplete", "unfinished download"}},
		"no index, by its number": {func(f map[string]string) {
			delete(f, indexName)
			delete(f, second)
		}, []string{second}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := three(t)
			c.change(files)
			dir := folderOf(t, files)
			_, err := Open(dir)
			if name == "wrong case" && err == nil {
				t.Skip("this file system does not tell upper from lower case")
			}
			refused(t, err, KindIncomplete, append(append(c.parts, dir), c.files...)...)
			var e *Error
			if errors.As(err, &e) && !slices.Equal(e.Files, c.files) {
				t.Errorf("Files is %v, want %v", e.Files, c.files)
			}
		})
	}
}

func TestTruncatedShard(t *testing.T) {
	files := three(t)
	name := "model-00002-of-00003.safetensors"
	files[name] = files[name][:len(files[name])-1]
	_, err := Open(folderOf(t, files))
	refused(t, err, KindIncomplete, name, `"t2"`)
}

func TestIndexTrouble(t *testing.T) {
	shard := string(pack(t, item{"a", U8, []int{1}, []byte{7}}))
	for name, c := range map[string]struct {
		index string
		kind  Kind
		parts []string
	}{
		"outside":         {`{"weight_map":{"a":"../model.safetensors"}}`, KindCorrupt, []string{`"a"`, "outside"}},
		"absolute":        {`{"weight_map":{"a":"/etc/x.safetensors"}}`, KindCorrupt, []string{`"a"`, "outside"}},
		"in and out":      {`{"weight_map":{"a":"x/../../y.safetensors"}}`, KindCorrupt, []string{`"a"`, "outside"}},
		"back-slashes":    {`{"weight_map":{"a":"..\\y.safetensors"}}`, KindCorrupt, []string{`"a"`, "outside"}},
		"nothing":         {`{"weight_map":{"a":""}}`, KindCorrupt, []string{`"a"`}},
		"a number":        {`{"weight_map":{"a":3}}`, KindCorrupt, []string{`"a"`}},
		"other format":    {`{"weight_map":{"a":"pytorch_model.bin"}}`, KindUnsupported, []string{"pytorch_model.bin"}},
		"no map":          {`{"metadata":{}}`, KindCorrupt, []string{"weight_map"}},
		"empty map":       {`{"weight_map":{}}`, KindCorrupt, []string{"weight_map"}},
		"map not a map":   {`{"weight_map":[]}`, KindCorrupt, []string{"weight_map"}},
		"not JSON":        {`{"weight_map"`, KindCorrupt, []string{indexName}},
		"stale: nowhere":  {`{"weight_map":{"a":"s.safetensors","gone":"s.safetensors"}}`, KindIncomplete, []string{`"gone"`, "s.safetensors"}},
		"a companion too": {`{"weight_map":{"a":"._s.safetensors"}}`, KindCorrupt, []string{"lists no tensor"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(folderOf(t, map[string]string{indexName: c.index, "s.safetensors": shard}))
			refused(t, err, c.kind, c.parts...)
		})
	}
}

func TestStaleIndex(t *testing.T) {
	a, b := string(pack(t, item{"a", U8, []int{1}, []byte{1}}, item{"c", U8, []int{1}, []byte{3}})), string(pack(t, item{"b", U8, []int{1}, []byte{2}}))
	f := open(t, folderOf(t, map[string]string{"x.safetensors": a, "y.safetensors": b,
		indexName: `{"weight_map":{"a":"y.safetensors","b":"x.safetensors","c":"x.safetensors"}}`}))
	if readAll(t, f, "a")[0] != 1 || readAll(t, f, "b")[0] != 2 {
		t.Error("a tensor that the index misplaces was not found")
	}
	// Two files hold it: the index decides, whichever file comes first.
	for _, choice := range []struct {
		file string
		want byte
	}{{"x.safetensors", 1}, {"y.safetensors", 9}} {
		f = open(t, folderOf(t, map[string]string{"x.safetensors": a, "y.safetensors": string(pack(t, item{"a", U8, []int{1}, []byte{9}}, item{"d", U8, []int{1}, nil})),
			indexName: `{"weight_map":{"a":"` + choice.file + `","c":"x.safetensors","d":"y.safetensors"}}`}))
		if got := readAll(t, f, "a")[0]; got != choice.want {
			t.Errorf("index says %s: got %d", choice.file, got)
		}
	}
	// Without an index nothing decides.
	_, err := Open(folderOf(t, map[string]string{"x.safetensors": a, "y.safetensors": a}))
	refused(t, err, KindCorrupt, `"a"`, "x.safetensors", "y.safetensors")
	// An index that outlived a conversion into one file.
	f = open(t, folderOf(t, map[string]string{weightsName: b, indexName: `{"weight_map":{"a":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors"}}`}))
	if len(f.Names()) != 1 {
		t.Error(f.Names())
	}
}

func TestCompanionsIgnored(t *testing.T) {
	junk := string(append([]byte{0, 5, 0x16, 7, 0, 2, 0, 0}, make([]byte, 4088)...))
	for _, files := range []map[string]string{three(t), without(three(t), indexName), {"config.json": "{}", weightsName: string(pack(t, item{"a", U8, []int{1}, nil}))}} {
		for _, name := range sortedKeys(files) {
			files["._"+name] = junk
		}
		files["._"+indexName], files["._"+weightsName], files["._config.json"], files[".DS_Store"] = junk, junk, junk, junk
		open(t, folderOf(t, files))
	}
	_, err := Open(folderOf(t, map[string]string{"._" + weightsName: junk, ".DS_Store": junk}))
	refused(t, err, KindEmpty)
}

func TestNotACheckpoint(t *testing.T) {
	plain := folderOf(t, map[string]string{"a.txt": "x"})
	for path, kind := range map[string]Kind{
		t.TempDir():                   KindEmpty,
		plain:                         KindNotACheckpoint,
		filepath.Join(plain, "none"):  KindNotFound,
		filepath.Join(plain, "a.txt"): KindNotAFolder,
		folderOf(t, map[string]string{"config.json": "{}"}):                                 KindNoWeights,
		folderOf(t, map[string]string{"config.json": "{}", "model.gguf": "GGUF"}):           KindUnsupported,
		folderOf(t, map[string]string{"config.json": "{}", weightsName + ".part": "x"}):     KindIncomplete,
		folderOf(t, map[string]string{"config.json": "{", weightsName: "x"}):                KindCorrupt,
		folderOf(t, map[string]string{"config.json": "{}", weightsName + "/a": "a folder"}): KindNotReadable,
	} {
		_, err := Open(path)
		refused(t, err, kind, path)
	}
}

func link(t testing.TB, to, from string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

func TestHubSnapshot(t *testing.T) {
	root := t.TempDir()
	snapshot := filepath.Join(root, "snapshots", "abc")
	files := three(t)
	i := 0
	for _, name := range sortedKeys(files) {
		blob := fmt.Sprintf("%064d", i)
		i++
		write(t, root, map[string]string{"blobs/" + blob: files[name]})
		link(t, "../../blobs/"+blob, filepath.Join(snapshot, name))
	}
	f := open(t, snapshot)
	x, _ := f.Tensor("t2")
	if x.File != "model-00002-of-00003.safetensors" || readAll(t, f, "t2")[0] != 2 {
		t.Errorf("%+v", x)
	}
	// The hub itself a link.
	linked := filepath.Join(t.TempDir(), "hub")
	link(t, root, linked)
	open(t, filepath.Join(linked, "snapshots", "abc"))

	// A blob gone, with its unfinished download beside it.
	second := filepath.Join(snapshot, "model-00002-of-00003.safetensors")
	to, _ := os.Readlink(second)
	blob := filepath.Join(snapshot, to)
	if err := os.Rename(blob, blob+".incomplete"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(snapshot)
	refused(t, err, KindIncomplete, "model-00002-of-00003.safetensors", "a link to "+to, ".incomplete")

	// A link to itself.
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Base(second), second)
	_, err = Open(snapshot)
	refused(t, err, KindNotReadable, second)
}

// oddNames are folders that people have.
var oddNames = []string{"Modèle", "Mode\u0300le", "two  spaces", "100% #1", "dot.", "blank ", "🦊", "~", "a/~b", "дом", "模型", `quo"te's`, `back\slash`,
	strings.Repeat("n", 250), strings.Repeat("ü", 125)}

func TestPathsOfAllSorts(t *testing.T) {
	good := without(three(t))
	for _, name := range oddNames {
		dir := filepath.Join(t.TempDir(), name)
		write(t, dir, good)
		f := open(t, dir)
		readAll(t, f, "t3")
		if f.Dir() != dir {
			t.Errorf("%q became %q", dir, f.Dir())
		}
	}
}
