package command

import (
	"context"
	"errors"
	"fmt"

	"firesteel/core/check"
	"firesteel/core/library"
)

// errDisagrees ends check with status 1; everything has been said by then.
var errDisagrees = errors.New("disagrees with the reference")

func (t *terminal) check(ctx context.Context, c *command, args []string) error {
	f := t.flags(c)
	pair := f.Bool("pair", false, "replay the reference rounds in FILE.json on a target and its drafter")
	target := f.String("target", "", "the target's `DIR`, for a drafter that borrows from one; without it, the one beside the drafter")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	rest := f.Args()
	if *pair {
		if len(rest) != 3 {
			return usageError(fmt.Sprintf("--pair needs a target, a drafter and a file, not %d names.", len(rest)))
		}
		return t.checkPair(ctx, rest[0], rest[1], rest[2])
	}
	if len(rest) == 0 {
		return usageError("check needs a folder with a golden.safetensors in it.")
	}
	bad := false
	for _, dir := range rest {
		compared, agreed, err := check.Golden(ctx, dir, *target, func(d check.Difference) {
			fmt.Fprintf(t.out, "  %-28s %.3e\n", d.Tensor, d.Max)
		})
		if err != nil {
			return err
		}
		verdict := "agrees with the reference"
		if compared == 0 || agreed != compared {
			verdict, bad = "DISAGREES with the reference", true
		}
		fmt.Fprintf(t.out, "%s: %s: %d of %d tensors within %g\n", dir, verdict, agreed, compared, check.Limit)
	}
	if bad {
		return errDisagrees
	}
	return nil
}

func (t *terminal) checkPair(ctx context.Context, target, drafter, file string) error {
	target, err := library.Resolve(target)
	if err != nil {
		return err
	}
	if drafter, err = library.Resolve(drafter); err != nil {
		return err
	}
	v, err := check.Pair(ctx, target, drafter, file, func(d check.Disagreement) {
		excuse := ""
		if d.Tie {
			excuse = " (a tie)"
		}
		fmt.Fprintf(t.out, "  %q, round %d: %s%s\n", d.Prompt, d.Round, d.What, excuse)
	})
	if err != nil {
		return err
	}
	verdict := "agrees with the reference"
	if !v.Agrees() {
		verdict = "DISAGREES with the reference"
	}
	fmt.Fprintf(t.out, "%s: %d prompts, %d of %d rounds, %d of %d tokens agree, %d ties; confidence within %.1e\n",
		verdict, v.Prompts, v.RoundsAgreeing, v.Rounds, v.TokensAgreeing, v.Tokens, v.Ties, v.LargestConfidenceDifference)
	if !v.Agrees() {
		return errDisagrees
	}
	return nil
}
