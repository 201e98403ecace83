package library

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"firesteel/models/checkpoint"
)

// PairError says that a target and a drafter do not belong together.
type PairError struct {
	Target, Drafter string // names
	// Field is what differs: "role", "family", "layers", "hidden size", "vocabulary", "taps" or
	// "mask token".
	Field string
	Want  string // what the drafter was made for; of "role", the role wanted
	Got   string // what the target has; of "role", the role found
}

func (e *PairError) Error() string {
	if e.Field == "role" {
		name := e.Target
		if e.Want == string(Drafter) {
			name = e.Drafter
		}
		return fmt.Sprintf("%s is a %s, not a %s", name, e.Got, e.Want)
	}
	return fmt.Sprintf("drafter %s does not go with target %s: %s: made for %s, the target has %s", e.Drafter, e.Target, e.Field, e.Want, e.Got)
}

// CheckPair returns nil if drafter can draft for target, otherwise a *PairError naming the first field
// that differs. Vocabularies may differ by padding: then drafted ids must be kept below the smaller one,
// see SharedVocabulary.
func CheckPair(target, drafter Description) error {
	differ := func(field string, want, got any) error {
		return &PairError{Target: target.Name, Drafter: drafter.Name, Field: field, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
	}
	switch {
	case target.Kind != Target:
		return differ("role", Target, target.Kind)
	case drafter.Kind != Drafter:
		return differ("role", Drafter, drafter.Kind)
	case drafter.TargetFamily != "" && drafter.TargetFamily != target.Family:
		return differ("family", Description{Family: drafter.TargetFamily}.FamilyName(), target.FamilyName())
	case drafter.TargetLayers != 0 && drafter.TargetLayers != target.Layers:
		return differ("layers", drafter.TargetLayers, target.Layers)
	case drafter.TargetHidden != target.Hidden:
		return differ("hidden size", drafter.TargetHidden, target.Hidden)
	case drafter.Vocabulary != target.Vocabulary && !paddingOnly(target, drafter):
		return differ("vocabulary", drafter.Vocabulary, target.Vocabulary)
	}
	low, high := 0, target.Layers // DFlash: the number of layers stands for the final norm
	if drafter.Family == DeepSpec {
		low, high = -1, target.Layers-1 // DeepSpec: −1 stands for the embedding
	}
	for _, tap := range drafter.Taps {
		if tap < low || tap > high {
			return differ("taps", fmt.Sprintf("layer %d", tap), fmt.Sprintf("layers %d to %d", low, high))
		}
	}
	if drafter.Family == DeepSpec && (drafter.MaskToken < 0 || drafter.MaskToken >= drafter.Vocabulary) {
		return differ("mask token", drafter.MaskToken, fmt.Sprintf("%d tokens", drafter.Vocabulary))
	}
	if id, inTarget, inDrafter, found := swappedToken(target, drafter); found {
		return differ("vocabulary", fmt.Sprintf("token %d = %q", id, inDrafter), fmt.Sprintf("%q", inTarget))
	}
	return nil
}

// DoubtPair says, in a few words, why a pair that CheckPair lets through may yet not be one: the
// drafter names another target. Then drafts may be bad, the text never. Empty when there is nothing to say.
func DoubtPair(target, drafter Description) string {
	if drafter.TargetID == "" {
		return ""
	}
	hidden, vocabulary, ok := sizesOfID(drafter.TargetID)
	if drafter.targetName() != target.Name || ok && (hidden != target.Hidden || vocabulary != target.Vocabulary) {
		return fmt.Sprintf("it was trained for %s", drafter.TargetID)
	}
	return ""
}

// SharedVocabulary returns how many token ids, counted from 0, both know. Ids from there on are padding
// in the longer table and must never be drafted.
func SharedVocabulary(target, drafter Description) int {
	return min(target.Vocabulary, drafter.Vocabulary)
}

// sizesOfID reads "name@HIDDENxVOCABULARY".
func sizesOfID(id string) (hidden, vocabulary int, ok bool) {
	at := strings.LastIndexByte(id, '@')
	if at < 0 {
		return 0, 0, false
	}
	h, v, found := strings.Cut(id[at+1:], "x")
	hidden, err1 := strconv.Atoi(h)
	vocabulary, err2 := strconv.Atoi(v)
	return hidden, vocabulary, found && err1 == nil && err2 == nil
}

// paddingOnly reports whether both vocabularies hold every token that the target's tokenizer has, so
// that they differ only in rows that stand for nothing.
func paddingOnly(target, drafter Description) bool {
	highest := -1
	for id := range readTokens(target.Dir) {
		highest = max(highest, id)
	}
	return highest >= 0 && highest < min(target.Vocabulary, drafter.Vocabulary)
}

// swappedToken compares the tokenizers of two folders, where both bring one, and returns the lowest id
// that stands for different tokens.
func swappedToken(target, drafter Description) (id int, inTarget, inDrafter string, found bool) {
	if sameFile(filepath.Join(target.Dir, tokenizerName), filepath.Join(drafter.Dir, tokenizerName)) {
		return 0, "", "", false
	}
	a, b := readTokens(target.Dir), readTokens(drafter.Dir)
	for n, token := range a {
		if other, ok := b[n]; ok && other != token && (!found || n < id) {
			id, inTarget, inDrafter, found = n, token, other, true
		}
	}
	return id, inTarget, inDrafter, found
}

// sameFile reports whether two files hold the same bytes, or one of them is not there.
func sameFile(a, b string) bool {
	x, err := os.ReadFile(a)
	if err != nil {
		return true
	}
	y, err := os.ReadFile(b)
	return err != nil || bytes.Equal(x, y)
}

const tokenizerName = "tokenizer.json"

// readTokens returns the tokens of the folder's tokenizer.json by id, nil when it can't be made out.
func readTokens(dir string) map[int]string {
	c, err := checkpoint.ReadConfig(filepath.Join(dir, tokenizerName))
	if err != nil {
		return nil
	}
	model, err := c.Object("model")
	if err != nil {
		return nil
	}
	vocabulary, err := model.Object("vocab")
	if err != nil {
		return nil
	}
	tokens := map[int]string{}
	for _, token := range vocabulary.Keys() {
		id, err := vocabulary.Int(token)
		if err != nil {
			return nil
		}
		tokens[id] = token
	}
	if c.Has("added_tokens") {
		added, err := c.Objects("added_tokens")
		if err != nil {
			return nil
		}
		for _, token := range added {
			id, err := token.Int("id")
			if err != nil {
				return nil
			}
			content, err := token.String("content")
			if err != nil {
				return nil
			}
			tokens[id] = content
		}
	}
	return tokens
}

// neighbourLimit bounds how many neighbouring folders are looked into.
const neighbourLimit = 500

// FindDrafter returns the folder of a drafter that goes with the target in targetDir: one inside it or
// beside it. Names decide among several: "drafter" first, then the one trained for a target of this
// name, then names that begin alike, then the alphabet.
func FindDrafter(targetDir string) (dir string, ok bool) {
	target, err := Describe(targetDir)
	if err != nil || target.Kind != Target {
		return "", false
	}
	type candidate struct {
		description Description
		rank        int
		alike       int
	}
	var found []candidate
	consider := func(path string, inside bool) {
		if !mayBeDrafter(path) {
			return
		}
		d, err := DescribeAs(Drafter, path)
		if err != nil || CheckPair(target, d) != nil {
			return
		}
		c := candidate{description: d, rank: 3, alike: commonPrefix(d.Name, target.Name)}
		switch {
		case strings.EqualFold(filepath.Base(path), "drafter") && inside:
			c.rank = 0
		case strings.EqualFold(filepath.Base(path), "drafter"):
			c.rank = 1
		case d.TargetID != "" && d.targetName() == target.Name, inside:
			c.rank = 2
		}
		found = append(found, c)
	}
	for _, path := range foldersIn(target.Dir) {
		consider(path, true)
	}
	for _, path := range foldersBeside(target.Dir) {
		consider(path, false)
	}
	if len(found) == 0 {
		return "", false
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		if a.rank != b.rank {
			return a.rank < b.rank
		}
		if a.alike != b.alike {
			return a.alike > b.alike
		}
		return a.description.Dir < b.description.Dir
	})
	return found[0].description.Dir, true
}

// FindTarget returns the folder beside drafterDir that its target_id names, or else the only one beside
// it that it goes with.
func FindTarget(drafterDir string) (dir string, ok bool) {
	drafter, err := Describe(drafterDir)
	if err != nil || drafter.Kind != Drafter {
		return "", false
	}
	var found []string
	for _, path := range foldersBeside(drafter.Dir) {
		target, err := Describe(path)
		if err != nil || CheckPair(target, drafter) != nil {
			continue
		}
		if target.Name == drafter.targetName() {
			return target.Dir, true
		}
		found = append(found, target.Dir)
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// mayBeDrafter looks at the configuration only, so that big neighbours cost nothing.
func mayBeDrafter(path string) bool {
	dir, err := snapshot(path)
	if err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, "dspark.json")); err == nil {
		return true
	}
	c, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return false
	}
	names, err := c.Strings("architectures")
	if err != nil || len(names) == 0 {
		return false
	}
	_, ok := drafterTarget(names[0])
	return ok
}

// foldersBeside lists the other folders in the one that dir is in; in the hub's cache, the other
// repositories.
func foldersBeside(dir string) []string {
	if repo, ok := repository(dir); ok {
		dir = repo
	}
	return slices.DeleteFunc(foldersIn(filepath.Dir(dir)), func(path string) bool { return path == dir })
}

// foldersIn lists the folders directly inside dir, links to folders included.
func foldersIn(dir string) []string {
	listing, err := checkpoint.List(dir)
	if err != nil {
		return nil
	}
	var folders []string
	for _, name := range listing.Names {
		if strings.HasPrefix(name, ".") || len(folders) == neighbourLimit {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			folders = append(folders, path)
		}
	}
	return folders
}

func commonPrefix(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
