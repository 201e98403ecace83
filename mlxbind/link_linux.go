package mlxbind

// OpenBLAS comes first on the line so that its routines are found before the slow reference
// ones that the MLX wheel brings along.

/*
#cgo CFLAGS: -O2 -I${SRCDIR}/../.deps/mlxc/include
#cgo LDFLAGS: -L${SRCDIR}/../.deps/mlxc/lib -L${SRCDIR}/../.deps/wheel/mlx/lib
#cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../.deps/mlxc/lib -Wl,-rpath,${SRCDIR}/../.deps/wheel/mlx/lib
#cgo LDFLAGS: -Wl,--no-as-needed -lopenblas -lmlxc -lmlx -ldl
*/
import "C"
