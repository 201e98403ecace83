# Each target is a thin line over go or a script; the scripts can be called by hand too.
#
#   make run       install what is missing, build, open the window
#   make test      the same set-up, then every test under two minutes
#   make check-all the long grids as well
#   make help      the rest

.DEFAULT_GOAL := build
.PHONY: help setup build headless run test race check-all cover bench lint check-darwin check-window pictures licences clean

# Tests run without migrated_fynedo, so that Fyne reports any work on the wrong thread.
# The libraries are found beside the program first, so the folder can be moved as a whole;
# the second place, for tests, is written down in mlxbind.
ifeq ($(shell uname -s),Darwin)
tags :=
beside := -Wl,-rpath,@executable_path/.deps/mlxc/lib -Wl,-rpath,@executable_path/.deps/wheel/mlx/lib
export MACOSX_DEPLOYMENT_TARGET := 14.0
else
tags := x11
beside := -Wl,-rpath,$$ORIGIN/.deps/mlxc/lib -Wl,-rpath,$$ORIGIN/.deps/wheel/mlx/lib
endif
export tags
go_build := go build -buildvcs=false -ldflags '-extldflags "$(beside)"'

help:
	@sed -n 's/^\([a-z-]*\):.* ## /\1	/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install what a build needs, only what is missing
	@scripts/setup.sh

build: setup ## ./firesteel, which runs from any folder
	$(go_build) -tags "$(tags) migrated_fynedo" -o firesteel .

headless: setup ## ./firesteel-headless: the command line alone, without window and built-in models
	$(go_build) -tags headless -o firesteel-headless .

run: build ## build and open the window
	@scripts/run.sh

test: setup ## every test but the long grids
	@scripts/test.sh

race: setup ## the tests of pure Go packages, with the race detector, afresh
	@scripts/test.sh race -count=1

check-all: setup ## every test and the long grids
	@FIRESTEEL_LONG=1 scripts/test.sh -timeout 40m

cover: setup ## how much of the code the tests reach
	go test -tags "$(tags)" -coverprofile=.deps/cover.out ./...
	@go tool cover -func=.deps/cover.out | tail -n 1

bench: setup ## speed against the Python peers, paired in one run
	@scripts/bench.sh

lint: setup ## formatting, vet, staticcheck, which package may import which
	@scripts/lint.sh

check-darwin: ## type-check the macOS side
	@scripts/check-darwin.sh

check-window: ## open the window on a display of its own, type, look, close it by every route
	@scripts/setup.sh window
	$(go_build) -tags "$(tags)" -o .deps/firesteel-checked .
	@scripts/window-smoke.sh .deps/firesteel-checked

licences: setup ## collect anew the licences that Help → About shows
	@scripts/licences.sh

pictures: ## take a picture of each state of the window, light and dark, for people to look at
	@scripts/setup.sh window
	@scripts/pictures.sh .deps/states

clean: ## remove what was built; `rm -rf .deps` removes what was set up
	rm -rf firesteel firesteel-headless .deps/firesteel-checked .deps/cover.out .deps/part-* .deps/*.log
