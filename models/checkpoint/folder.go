package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

const (
	configName  = "config.json"
	dsparkName  = "dspark.json"
	indexName   = "model.safetensors.index.json"
	weightsName = "model.safetensors"
	// goldenName holds reference values beside a fixture's weights, never weights.
	goldenName = "golden.safetensors"
)

// Folder is an open checkpoint: its configuration and where every tensor lies. Its files stay
// open until Close. All methods may be called from any goroutine.
type Folder struct {
	dir     string
	config  *Config
	quant   *policy
	shards  map[string]shard
	tensors map[string]Tensor
	names   []string
	bytes   int64
	onDisk  int64
}

// Open reads config.json (if there is one), the shard index and every header of the checkpoint in
// dir, and checks them. It reads no tensor data and never writes. Close the folder when done.
func Open(dir string) (*Folder, error) {
	listing, err := List(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, shards: map[string]shard{}, tensors: map[string]Tensor{}}
	if listing.Has(configName) {
		f.config, err = ReadConfig(filepath.Join(dir, configName))
		if err != nil {
			return nil, err
		}
	} else {
		f.config = &Config{path: filepath.Join(dir, configName)}
	}
	if f.quant, err = readPolicy(f.config); err != nil {
		return nil, err
	}
	files, index, err := weightFiles(listing)
	if err != nil {
		return nil, err
	}
	if err := f.openShards(files, index); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenFile opens one safetensors file by itself, such as recorded reference values; its
// configuration is empty.
func OpenFile(path string) (*Folder, error) {
	dir, name := filepath.Split(path)
	f := &Folder{dir: filepath.Clean(dir), shards: map[string]shard{}, tensors: map[string]Tensor{}, config: &Config{path: path}}
	var err error
	if f.quant, err = readPolicy(f.config); err != nil {
		return nil, err
	}
	if err := f.openShards([]string{name}, nil); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the files. Later reads fail.
func (f *Folder) Close() error {
	var errs []error
	for _, s := range f.shards {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Dir returns the folder as given to Open.
func (f *Folder) Dir() string { return f.dir }

// Config returns config.json's values; an empty object when the folder has none.
func (f *Folder) Config() *Config { return f.config }

// Names returns the names of all tensors, sorted. The slice is the folder's own: don't change it.
func (f *Folder) Names() []string { return f.names }

// Tensor returns where the tensor of this name lies.
func (f *Folder) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Bytes returns the sum of all tensors' bytes.
func (f *Folder) Bytes() int64 { return f.bytes }

// FileBytes returns the size of the weight files on disk.
func (f *Folder) FileBytes() int64 { return f.onDisk }

// Listing is what lies directly in a folder, without the companions that macOS leaves on foreign
// drives ("._…", .DS_Store).
type Listing struct {
	Dir   string
	Names []string // sorted
	set   map[string]bool
}

// Has reports whether the folder holds an entry of exactly this name.
func (l *Listing) Has(name string) bool { return l.set[name] }

// IsCompanion reports whether a file name is one of macOS's own, never part of a checkpoint.
func IsCompanion(name string) bool {
	return strings.HasPrefix(name, "._") || name == ".DS_Store"
}

// List reads the names in the folder dir. Failures are *Error: not found, not a folder, not readable.
func List(dir string) (*Listing, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, FileError(dir, err)
	}
	if !info.IsDir() {
		return nil, &Error{Kind: KindNotAFolder, Path: dir, Detail: "not a folder"}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, FileError(dir, err)
	}
	l := &Listing{Dir: dir, set: map[string]bool{}}
	for _, e := range entries {
		if !IsCompanion(e.Name()) {
			l.Names = append(l.Names, e.Name())
			l.set[e.Name()] = true
		}
	}
	return l, nil
}

// weightFiles decides which files hold the weights. index is nil without an index file, otherwise it
// says for each tensor which file is to be preferred.
func weightFiles(l *Listing) (files []string, index map[string]string, err error) {
	if l.Has(indexName) {
		index, err := readIndex(filepath.Join(l.Dir, indexName))
		if err != nil {
			return nil, nil, err
		}
		files := shardsOf(index)
		absent := absentFiles(l, files)
		switch {
		case len(absent) == 0:
			return files, index, nil
		case len(absent) == len(files) && l.Has(weightsName):
			// None of its shards is left: the index outlived a conversion into one file.
			return []string{weightsName}, nil, nil
		}
		return nil, nil, incomplete(l, absent)
	}
	if l.Has(weightsName) {
		files = []string{weightsName}
	} else {
		for _, name := range l.Names {
			if strings.HasSuffix(name, ".safetensors") && name != goldenName && !strings.HasPrefix(name, ".") {
				files = append(files, name)
			}
		}
		files = append(files, unlistedShards(files)...)
		sort.Strings(files)
	}
	if len(files) == 0 {
		return nil, nil, noWeights(l)
	}
	if absent := absentFiles(l, files); len(absent) > 0 {
		return nil, nil, incomplete(l, absent)
	}
	return files, nil, nil
}

// readIndex returns the file of each tensor, as model.safetensors.index.json maps them.
func readIndex(path string) (map[string]string, error) {
	c, err := ReadConfig(path)
	if err != nil {
		return nil, err
	}
	weights, err := c.Object("weight_map")
	if err != nil {
		return nil, &Error{Kind: KindCorrupt, Path: path, Key: "weight_map", Detail: "missing, or not an object"}
	}
	index := map[string]string{}
	for _, name := range weights.Keys() {
		file, ok := weights.values[name].(string)
		if !ok {
			return nil, &Error{Kind: KindCorrupt, Path: path, Tensor: name, Detail: "its file is not text"}
		}
		if !filepath.IsLocal(file) || strings.Contains(file, `\`) || file == "." {
			return nil, &Error{Kind: KindCorrupt, Path: path, Tensor: name,
				Detail: fmt.Sprintf("its file %q lies outside the folder", clip(file))}
		}
		if IsCompanion(filepath.Base(file)) {
			continue
		}
		if !strings.HasSuffix(file, ".safetensors") {
			return nil, &Error{Kind: KindUnsupported, Path: path, Tensor: name,
				Detail: fmt.Sprintf("its file %q is not a safetensors file", clip(file))}
		}
		index[name] = filepath.Clean(file)
	}
	if len(index) == 0 {
		return nil, &Error{Kind: KindCorrupt, Path: path, Key: "weight_map", Detail: "it lists no tensor"}
	}
	return index, nil
}

func shardsOf(index map[string]string) []string {
	set := map[string]bool{}
	for _, file := range index {
		set[file] = true
	}
	files := make([]string, 0, len(set))
	for file := range set {
		files = append(files, file)
	}
	sort.Strings(files)
	return files
}

var numberedShard = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.safetensors$`)

// unlistedShards returns the files that the numbers in the given shards' names promise and that are
// not among them.
func unlistedShards(files []string) []string {
	have := map[string]bool{}
	series := map[string]int{}
	for _, file := range files {
		have[file] = true
		if m := numberedShard.FindStringSubmatch(file); m != nil {
			series[m[1]], _ = strconv.Atoi(m[3])
		}
	}
	var missing []string
	for stem, count := range series {
		// A name can promise 99999 shards; no model has that many, and the message needs only some.
		for i := 1; i <= min(count, 1000); i++ {
			name := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i, count)
			if !have[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// absentFiles returns those of files that are not there, or are empty. A link whose file is gone
// counts as absent.
func absentFiles(l *Listing, files []string) []string {
	var absent []string
	for _, file := range files {
		info, err := os.Stat(filepath.Join(l.Dir, file))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && info.Mode().IsRegular() {
			absent = append(absent, file)
		}
	}
	return absent
}

// incomplete says which files are absent and why that may be.
func incomplete(l *Listing, absent []string) error {
	var parts []string
	for _, file := range absent {
		parts = append(parts, file+why(l, file))
	}
	detail := "missing: " + strings.Join(parts, ", ")
	if partials := l.Partials(); len(partials) > 0 {
		detail += "; " + partials[0] + " suggests an unfinished download"
	}
	return &Error{Kind: KindIncomplete, Path: l.Dir, Files: absent, Detail: detail}
}

func why(l *Listing, file string) string {
	path := filepath.Join(l.Dir, file)
	if info, err := os.Lstat(path); err == nil && l.Has(file) {
		if info.Mode()&fs.ModeSymlink != 0 {
			if to, err := os.Readlink(path); err == nil {
				return " (" + deadLink(to) + ")"
			}
		}
		if info.Size() == 0 {
			return " (empty)"
		}
	}
	for _, name := range l.Names {
		if strings.EqualFold(name, file) {
			return fmt.Sprintf(" (the folder has %s)", name)
		}
	}
	return ""
}

// Partials returns the unfinished downloads in the folder and where the hub's tools keep theirs, as
// paths that begin at the folder.
func (l *Listing) Partials() []string {
	var partials []string
	for _, name := range l.Names {
		if IsPartial(name) {
			partials = append(partials, name)
		}
	}
	elsewhere := []string{".cache/huggingface/download"}
	if filepath.Base(filepath.Dir(l.Dir)) == "snapshots" {
		elsewhere = append(elsewhere, "../../blobs")
	}
	for _, dir := range elsewhere {
		entries, err := os.ReadDir(filepath.Join(l.Dir, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if IsPartial(e.Name()) && !IsCompanion(e.Name()) {
				partials = append(partials, filepath.Join(dir, e.Name()))
			}
		}
	}
	return partials
}

// IsPartial reports whether a file name is one that download tools give unfinished files.
func IsPartial(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".part", ".partial", ".incomplete", ".crdownload", ".download", ".aria2":
		return true
	}
	return false
}

// noWeights says what a folder without safetensors files is instead.
func noWeights(l *Listing) error {
	if partials := l.Partials(); len(partials) > 0 {
		return &Error{Kind: KindIncomplete, Path: l.Dir, Files: []string{weightsName},
			Detail: "missing: " + weightsName + "; " + partials[0] + " suggests an unfinished download"}
	}
	if len(l.Names) == 0 {
		return &Error{Kind: KindEmpty, Path: l.Dir, Detail: "the folder is empty"}
	}
	for _, name := range l.Names {
		switch strings.ToLower(filepath.Ext(name)) {
		case ".gguf", ".bin", ".pt", ".pth", ".npz", ".onnx":
			return &Error{Kind: KindUnsupported, Path: l.Dir, Detail: fmt.Sprintf("its weights (%s) are not in safetensors format", name)}
		}
	}
	if l.Has(configName) || l.Has(dsparkName) {
		return &Error{Kind: KindNoWeights, Path: l.Dir, Detail: "no safetensors weights"}
	}
	return &Error{Kind: KindNotACheckpoint, Path: l.Dir, Detail: "no config.json and no safetensors weights"}
}

// openShards opens the files and collects their tensors.
func (f *Folder) openShards(files []string, index map[string]string) error {
	for _, file := range files {
		path := filepath.Join(f.dir, file)
		// Looked at before opening: opening a pipe would wait for its other end.
		info, err := os.Stat(path)
		if err != nil {
			return FileError(path, err)
		}
		if !info.Mode().IsRegular() {
			return &Error{Kind: KindNotReadable, Path: path, Detail: "not an ordinary file"}
		}
		handle, err := os.Open(path)
		if err != nil {
			return FileError(path, err)
		}
		f.shards[file] = shard{handle, handle}
		f.onDisk += info.Size()
		tensors, err := readHeader(handle, info.Size(), path, file)
		if err != nil {
			return err
		}
		for _, t := range tensors {
			if earlier, twice := f.tensors[t.Name]; twice {
				switch index[t.Name] {
				case earlier.File:
					continue
				case t.File:
				default:
					return &Error{Kind: KindCorrupt, Path: path, Tensor: t.Name, Detail: "it is in " + earlier.File + " too"}
				}
			}
			f.tensors[t.Name] = t
		}
	}
	for _, name := range sortedKeys(index) {
		// A tensor that lies in another shard than the index says is found; one that lies nowhere is not made up.
		if _, ok := f.tensors[name]; !ok {
			return &Error{Kind: KindIncomplete, Path: filepath.Join(f.dir, index[name]), Tensor: name,
				Detail: indexName + " places it here, but the file does not have it"}
		}
	}
	for name, t := range f.tensors {
		f.names = append(f.names, name)
		f.bytes += t.Size
	}
	sort.Strings(f.names)
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
