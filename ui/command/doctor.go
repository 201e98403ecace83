package command

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"firesteel/core/check"
	"firesteel/core/memory"
)

func (t *terminal) doctor(ctx context.Context, c *command, args []string) error {
	f := t.flags(c)
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return usageError("doctor takes no names.")
	}
	r := memory.Read()
	fmt.Fprintf(t.out, "Firesteel  %s, %s, %s/%s\n", t.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	health, err := check.Machine(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "MLX        %s, on %s\n", health.MLX, health.Device)
	fmt.Fprintf(t.out, "memory     %s free of %s; this program holds %s\n", gigabytes(r.Available), gigabytes(r.MachineTotal), gigabytes(r.Process))
	if runtime.GOOS == "linux" && !health.GPU {
		if path, err := exec.LookPath("g++"); err == nil {
			fmt.Fprintf(t.out, "compiler   %s: kernels are fused\n", path)
		} else {
			fmt.Fprintln(t.out, "compiler   no g++ found: Firesteel works, more slowly")
		}
	}
	if !health.Right() {
		fmt.Fprintf(t.out, "product    a matrix product is off by %.1e: this machine computes wrongly\n", health.Product)
		return errDisagrees
	}
	fmt.Fprintf(t.out, "product    a matrix product agrees with plain code (%.1e)\n", health.Product)
	return nil
}
