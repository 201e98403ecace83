package checkpoint

import (
	"os"
	"path/filepath"
	"sort"
)

// Generation is what generation_config.json recommends; nil where it is silent.
type Generation struct {
	EOS                     []int
	Temperature, TopP, MinP *float64
	TopK                    *int
	DoSample                *bool
}

// Generation reads generation_config.json. A folder without one gives the zero value.
func (f *Folder) Generation() (Generation, error) {
	var g Generation
	path := filepath.Join(f.dir, "generation_config.json")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return g, nil
	}
	c, err := ReadConfig(path)
	if err != nil {
		return g, err
	}
	if g.EOS, err = c.IntList("eos_token_id"); err != nil {
		return g, err
	}
	for key, to := range map[string]**float64{"temperature": &g.Temperature, "top_p": &g.TopP, "min_p": &g.MinP} {
		if c.Has(key) {
			v, err := c.Float(key)
			if err != nil {
				return g, err
			}
			*to = &v
		}
	}
	if c.Has("top_k") {
		v, err := c.Int("top_k")
		if err != nil {
			return g, err
		}
		g.TopK = &v
	}
	if c.Has("do_sample") {
		v, err := c.Bool("do_sample")
		if err != nil {
			return g, err
		}
		g.DoSample = &v
	}
	return g, nil
}

// EOS returns the ids that end a text, from everywhere this folder's configuration declares them:
// config.json, its text_config, and generation_config.json. Sorted, each once. The tokenizer may
// know more.
func (f *Folder) EOS() ([]int, error) {
	seen := map[int]bool{}
	add := func(ids []int, err error) error {
		for _, id := range ids {
			if id >= 0 {
				seen[id] = true
			}
		}
		return err
	}
	if err := add(f.config.IntList("eos_token_id")); err != nil {
		return nil, err
	}
	text, err := f.config.Text()
	if err != nil {
		return nil, err
	}
	if err := add(text.IntList("eos_token_id")); err != nil {
		return nil, err
	}
	g, err := f.Generation()
	if err := add(g.EOS, err); err != nil {
		return nil, err
	}
	ids := make([]int, 0, len(seen))
	for id := range seen {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	return ids, nil
}
