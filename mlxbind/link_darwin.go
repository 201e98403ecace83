package mlxbind

/*
#cgo CFLAGS: -O2 -I${SRCDIR}/../.deps/mlxc/include
#cgo LDFLAGS: -L${SRCDIR}/../.deps/mlxc/lib -L${SRCDIR}/../.deps/wheel/mlx/lib
#cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../.deps/mlxc/lib -Wl,-rpath,${SRCDIR}/../.deps/wheel/mlx/lib
#cgo LDFLAGS: -lmlxc -lmlx
*/
import "C"
