package checkpoint

// Fields reads many keys of one configuration and keeps the first error, so that a
// constructor can list what it needs and check once.
type Fields struct {
	*Config
	Err error
}

func field[T any](f *Fields, v T, err error) T {
	if err != nil && f.Err == nil {
		f.Err = err
	}
	return v
}

// Count is a required whole number above zero.
func (f *Fields) Count(key string) int { v, err := f.PositiveInt(key); return field(f, v, err) }

// Whole is a whole number, absent when the key is missing or null.
func (f *Fields) Whole(key string, absent int) int {
	v, err := f.IntOr(key, absent)
	return field(f, v, err)
}

// Number is a number, absent when the key is missing or null.
func (f *Fields) Number(key string, absent float64) float64 {
	v, err := f.FloatOr(key, absent)
	return field(f, v, err)
}

// Flag is a truth value, absent when the key is missing or null.
func (f *Fields) Flag(key string, absent bool) bool {
	v, err := f.BoolOr(key, absent)
	return field(f, v, err)
}

// Text is a string, absent when the key is missing or null.
func (f *Fields) Text(key, absent string) string {
	v, err := f.StringOr(key, absent)
	return field(f, v, err)
}

// Words is a required list of strings.
func (f *Fields) Words(key string) []string { v, err := f.Strings(key); return field(f, v, err) }

// Wholes is a required list of whole numbers.
func (f *Fields) Wholes(key string) []int { v, err := f.Ints(key); return field(f, v, err) }
