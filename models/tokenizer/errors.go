package tokenizer

import "fmt"

// Error says which file, and which field of it, a tokenizer could not be made from.
type Error struct {
	File   string // the file's path as it was given
	Field  string // a path into the file such as "model.merges[3]"; "" for the file as a whole
	Detail string // what is wrong there
	Err    error  // the cause, if there is one
}

func (e *Error) Error() string {
	s := e.File
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// fieldError is an Error that does not know its file yet.
type fieldError struct {
	field  string
	detail string
	err    error
}

func (e *fieldError) Error() string {
	s := e.field + ": " + e.detail
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *fieldError) Unwrap() error { return e.err }

func badField(field, format string, args ...any) error {
	return &fieldError{field: field, detail: fmt.Sprintf(format, args...)}
}
