package checkpoint

import (
	"path/filepath"
	"slices"
	"testing"
)

func config(t testing.TB, text string) *Config {
	t.Helper()
	c, err := ParseConfig("/m/config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigValues(t *testing.T) {
	c := config(t, "\xef\xbb\xbf"+`{"n":8,"big":9007199254740993,"whole":8.0,"half":0.5,"yes":true,"name":"x","list":[1,2],
		"numbers":[1,0.5],"texts":["a"],"none":null,"rope_parameters":{"full_attention":{"rope_theta":1e6}}}`)
	if n, err := c.Int("n"); n != 8 || err != nil {
		t.Error(n, err)
	}
	if n, err := c.Int("big"); n != 9007199254740993 || err != nil {
		t.Errorf("2^53+1 became %d, %v", n, err)
	}
	if n, err := c.Int("whole"); n != 8 || err != nil {
		t.Error(n, err)
	}
	if n, err := c.IntOr("none", 3); n != 3 || err != nil {
		t.Error("null does not count as absent:", n, err)
	}
	if x, err := c.Float("half"); x != 0.5 || err != nil {
		t.Error(x, err)
	}
	if l, err := c.Ints("list"); !slices.Equal(l, []int{1, 2}) || err != nil {
		t.Error(l, err)
	}
	if l, err := c.Floats("numbers"); !slices.Equal(l, []float64{1, 0.5}) || err != nil {
		t.Error(l, err)
	}
	if l, err := c.Strings("texts"); !slices.Equal(l, []string{"a"}) || err != nil {
		t.Error(l, err)
	}
	if b, err := c.Bool("yes"); !b || err != nil {
		t.Error(b, err)
	}
	rope, err := c.Object("rope_parameters")
	if err != nil {
		t.Fatal(err)
	}
	full, err := rope.Object("full_attention")
	if err != nil {
		t.Fatal(err)
	}
	if x, err := full.Float("rope_theta"); x != 1e6 || err != nil {
		t.Error(x, err)
	}
	_, err = full.Float("partial_rotary_factor")
	refused(t, err, KindBadConfig, "/m/config.json", `"rope_parameters.full_attention.partial_rotary_factor"`, "missing")
}

func TestConfigRefuses(t *testing.T) {
	c := config(t, `{"n":"8","half":0.5,"huge":1e400,"over":99999999999999999999,"list":[1,"a"],"b":1,"s":3,"o":[],"zero":0,"neg":-4}`)
	for name, try := range map[string]func() error{
		"n":    func() error { _, err := c.Int("n"); return err },
		"half": func() error { _, err := c.Int("half"); return err },
		"huge": func() error { _, err := c.Float("huge"); return err },
		"over": func() error { _, err := c.Int("over"); return err },
		"list": func() error { _, err := c.Ints("list"); return err },
		"b":    func() error { _, err := c.Bool("b"); return err },
		"s":    func() error { _, err := c.String("s"); return err },
		"o":    func() error { _, err := c.Object("o"); return err },
		"zero": func() error { _, err := c.PositiveInt("zero"); return err },
		"neg":  func() error { _, err := c.PositiveInt("neg"); return err },
		"none": func() error { _, err := c.Int("none"); return err },
	} {
		refused(t, try(), KindBadConfig, "/m/config.json", `"`+name+`"`)
	}
	for text, kind := range map[string]Kind{"": KindIncomplete, " \n": KindIncomplete, `{"a":`: KindCorrupt, `{} {}`: KindCorrupt, `[]`: KindCorrupt, `null`: KindCorrupt, "\x00\x00": KindCorrupt} {
		_, err := ParseConfig("/m/config.json", []byte(text))
		refused(t, err, kind, "/m/config.json")
	}
}

func TestConfigText(t *testing.T) {
	c := config(t, `{"model_type":"gemma4","vocab_size":5,"text_config":{"model_type":"gemma4_text","hidden_size":64,"vocab_size":null}}`)
	text, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := text.String("model_type"); s != "gemma4_text" {
		t.Error(s)
	}
	if n, err := text.Int("vocab_size"); n != 5 || err != nil {
		t.Error("the outer value does not stand in:", n, err)
	}
	if flat := config(t, `{"a":1}`); func() *Config { c, _ := flat.Text(); return c }() != flat {
		t.Error("a flat configuration is not its own text")
	}
}

func TestEOS(t *testing.T) {
	weights := string(pack(t, item{"a", F32, []int{1}, nil}))
	for name, c := range map[string]struct {
		config, generation string
		want               []int
	}{
		"int and list":         {`{"eos_token_id":1}`, `{"eos_token_id":[1,106,50]}`, []int{1, 50, 106}},
		"nested":               {`{"eos_token_id":[1],"text_config":{"eos_token_id":7}}`, `{}`, []int{1, 7}},
		"list in config":       {`{"eos_token_id":[6,1]}`, ``, []int{1, 6}},
		"only generation":      {`{}`, `{"eos_token_id":106}`, []int{106}},
		"null and negative":    {`{"eos_token_id":null}`, `{"eos_token_id":[-1,3]}`, []int{3}},
		"declared nowhere":     {`{}`, `{}`, []int{}},
		"only in text_config":  {`{"text_config":{"eos_token_id":[2]}}`, ``, []int{2}},
		"a user's longer list": {`{"eos_token_id":2}`, `{"eos_token_id":[]}`, []int{2}},
	} {
		files := map[string]string{"model.safetensors": weights, "config.json": c.config}
		if c.generation != "" {
			files["generation_config.json"] = c.generation
		}
		ids, err := open(t, folderOf(t, files)).EOS()
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, ids, err, c.want)
		}
	}
	f := open(t, folderOf(t, map[string]string{"model.safetensors": weights, "config.json": `{"eos_token_id":"end"}`}))
	_, err := f.EOS()
	refused(t, err, KindBadConfig, "config.json", "eos_token_id")
}

func TestGeneration(t *testing.T) {
	weights := string(pack(t, item{"a", F32, []int{1}, nil}))
	dir := folderOf(t, map[string]string{"model.safetensors": weights,
		"generation_config.json": `{"temperature":1.0,"top_p":0.95,"top_k":64,"do_sample":true,"transformers_version":"5"}`})
	g, err := open(t, dir).Generation()
	if err != nil || g.Temperature == nil || *g.Temperature != 1 || *g.TopP != 0.95 || *g.TopK != 64 || !*g.DoSample || g.MinP != nil {
		t.Errorf("%+v, %v", g, err)
	}
	write(t, dir, map[string]string{"generation_config.json": `{"top_k":"many"}`})
	_, err = open(t, dir).Generation()
	refused(t, err, KindBadConfig, filepath.Join(dir, "generation_config.json"), "top_k")
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"quantization":{"bits":4,"a.b":false,"c":{"bits":null}},"text_config":{"x":[1,2.5]}}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig("config.json", b)
		if err == nil {
			_, err = readPolicy(c)
		}
		if err != nil && KindOf(err) == KindUnknown {
			t.Fatalf("an error without a kind: %v", err)
		}
	})
}
