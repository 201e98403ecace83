//go:build headless

// Package demo holds no pair in the headless build.
package demo

import "errors"

// ErrAbsent is what Unpack returns: this build carries no models.
var ErrAbsent = errors.New("this build carries no models")

// Unpack returns ErrAbsent.
func Unpack(string) (target, drafter string, err error) { return "", "", ErrAbsent }
