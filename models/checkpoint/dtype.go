package checkpoint

// DType is a tensor's element type under its safetensors name.
type DType string

const (
	Bool      DType = "BOOL"
	U8        DType = "U8"
	I8        DType = "I8"
	U16       DType = "U16"
	I16       DType = "I16"
	U32       DType = "U32"
	I32       DType = "I32"
	U64       DType = "U64"
	I64       DType = "I64"
	F8E4M3    DType = "F8_E4M3"
	F8E5M2    DType = "F8_E5M2"
	F8E8M0    DType = "F8_E8M0"
	F16       DType = "F16"
	BF16      DType = "BF16"
	F32       DType = "F32"
	F64       DType = "F64"
	Complex64 DType = "C64"
)

// Size returns the bytes of one element, 0 for a type that is not handled.
func (d DType) Size() int {
	switch d {
	case Bool, U8, I8, F8E4M3, F8E5M2, F8E8M0:
		return 1
	case U16, I16, F16, BF16:
		return 2
	case U32, I32, F32:
		return 4
	case U64, I64, F64, Complex64:
		return 8
	}
	return 0
}

// Float reports whether elements are real floating-point numbers of 16 bits or more.
func (d DType) Float() bool { return d == F16 || d == BF16 || d == F32 || d == F64 }

// packedBelowByte lists the format's types of which several elements share a byte.
func packedBelowByte(d DType) bool { return d == "F4" || d == "F6_E2M3" || d == "F6_E3M2" }
