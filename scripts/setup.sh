#!/usr/bin/env bash
# Puts everything a build needs into place: compilers and libraries from the system's package
# manager, MLX and mlx-c into .deps/. Installs only what is missing; a second run changes
# nothing and needs no network. Every part is made beside its place and moved in last, so a run
# that was stopped half way is mended by the next one.
#
#   scripts/setup.sh           what build, run and test need
#   scripts/setup.sh window    also what the check of the window on screen needs
#   scripts/setup.sh zig       also the compiler that checks the macOS side on Linux
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
deps=$root/.deps

mlx_version=0.32.2
crate=mlx-sys
crate_version=0.7.0
crate_sum=da965f83ce211b80f9b681d9bbd6fa625fe6bb2e659ba7bc55dd95eea8d3b028
zig_version=0.17.1
zig_sum=ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54

say() { printf 'set-up: %s\n' "$*"; }
fail() {
	printf 'set-up stopped: %s\n' "$*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" = "$2" ]; }

sum_of() {
	if have sha256sum; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# wheel NAME VERSION PLATFORM SHA256 FOLDER: unpacks one Python wheel into FOLDER. The Python
# version given is only what pip chooses by; the wheels hold no Python code that we run.
wheel() {
	local part=$deps/part-$1 file
	rm -rf "$part"
	mkdir -p "$part"
	say "fetching $1 $2"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
		--python-version 3.12 --platform "$3" --dest "$part" "$1==$2" 2>"$part/log" ||
		fail "pip could not download $1 $2 ($(grep -v '^ *$' "$part/log" | tail -n 1)). Check the network and try again."
	file=$(ls "$part"/*.whl)
	[ "$(sum_of "$file")" = "$4" ] || {
		rm -rf "$part"
		fail "the download of $1 $2 is not the file this version of Firesteel was made with (its SHA-256 differs), so it was not used. Try again; if it stays so, please report it."
	}
	python3 -m zipfile -e "$file" "$part/content" || fail "$file could not be unpacked; is the disk full?"
	rm -rf "$5"
	mv "$part/content" "$5"
	rm -rf "$part"
}

system_debian() {
	local wanted="ca-certificates gcc g++ make pkg-config cmake libgl1-mesa-dev xorg-dev libopenblas-dev libfmt-dev xvfb xauth"
	local missing="" installed name as=""
	case " $extras " in *" window "*) wanted="$wanted xdotool imagemagick" ;; esac
	# shellcheck disable=SC2086 # a list of words
	installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null | awk '$1 == "ii" { print $2 }' || true)
	for name in $wanted; do
		grep -qx "$name" <<<"$installed" || missing="$missing $name"
	done
	if [ -n "$unfinished" ]; then
		python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip"
		[ -z "$need_mlxc" ] || have cargo || missing="$missing cargo"
	fi
	[ -n "$missing" ] || return 0

	if [ "$(id -u)" != 0 ]; then
		have sudo || fail "these packages are missing:$missing. Let an administrator type: apt-get install$missing"
		as=sudo
	fi
	say "installing$missing"
	$as apt-get update -qq >/dev/null 2>&1 || true # a broken extra source need not stop us
	mkdir -p "$deps"
	# shellcheck disable=SC2086 # a list of words
	$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >"$deps/apt.log" 2>&1 </dev/null ||
		fail "apt-get could not install$missing ($(grep '^E:' "$deps/apt.log" | head -n 1)). The whole story is in .deps/apt.log."
}

system_macos() {
	local missing="" name
	xcode-select -p >/dev/null 2>&1 || fail "Apple's command line tools are missing. Type: xcode-select --install"
	have cmake || missing="$missing cmake"
	have cargo || missing="$missing rust"
	[ -n "$missing" ] || return 0
	have brew || fail "these tools are missing:$missing. Install Homebrew (brew.sh), or the tools themselves, and try again."
	for name in $missing; do
		say "installing $name"
		brew install --quiet "$name" || fail "Homebrew could not install $name; what it said is above."
	done
}

build_mlxc() {
	local part=$deps/part-mlxc name rpath flags=() log
	log=$deps/mlxc.log
	rm -rf "$part"
	mkdir -p "$part/fetch"

	# cargo fetches the crate and checks it. What the crate would need to be built as Rust is
	# replaced by empty stand-ins: only the C sources that it carries are of use here.
	# The variables let Debian 12's cargo 1.65 ask the registry for one crate, as newer ones do;
	# by itself it would clone the whole index.
	say "fetching $crate $crate_version"
	(
		cd "$part/fetch"
		: >empty.rs
		{
			printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "empty.rs"\n'
			printf '[dependencies]\n%s = "=%s"\n[patch.crates-io]\n' "$crate" "$crate_version"
			for name in bindgen cc cmake; do printf '%s = { path = "%s" }\n' $name $name; done
		} >Cargo.toml
		for name in bindgen:0.72.99 cc:1.99.0 cmake:0.1.99; do
			mkdir "${name%:*}"
			printf '[package]\nname = "%s"\nversion = "%s"\nedition = "2021"\n[lib]\npath = "../empty.rs"\n' \
				"${name%:*}" "${name#*:}" >"${name%:*}/Cargo.toml"
		done
		export RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true CARGO_REGISTRIES_CRATES_IO_PROTOCOL=sparse
		cargo vendor --quiet vendor >/dev/null 2>"$log"
	) || fail "cargo could not fetch $crate $crate_version ($(grep -v '^ *$' "$log" | tail -n 1 | sed 's/^ *//')). It takes cargo 1.65 or newer ($(cargo --version 2>/dev/null || echo none) is here) and a network."
	grep -q "\"package\":\"$crate_sum\"" "$part/fetch/vendor/$crate/.cargo-checksum.json" ||
		fail "the download of $crate $crate_version is not the file this version of Firesteel was made with (its checksum differs), so it was not used."

	if [ "$system" = macos ]; then
		rpath='@loader_path/../../wheel/mlx/lib'
		flags=(-DCMAKE_OSX_DEPLOYMENT_TARGET=14.0 -DCMAKE_OSX_ARCHITECTURES=arm64)
	else
		rpath='$ORIGIN/../../wheel/mlx/lib'
		flags=(-DCMAKE_CXX_FLAGS="-include '$root/scripts/stdformat.h'")
	fi
	say "building mlx-c (about a minute)"
	{
		cmake -S "$part/fetch/vendor/$crate/src/mlx-c" -B "$part/build" -DCMAKE_BUILD_TYPE=Release \
			-DMLX_C_USE_SYSTEM_MLX=ON -DBUILD_SHARED_LIBS=ON -DMLX_C_BUILD_EXAMPLES=OFF \
			-DMLX_DIR="$deps/wheel/mlx/share/cmake/MLX" -DCMAKE_PREFIX_PATH="$deps/wheel/mlx" \
			-DCMAKE_INSTALL_PREFIX="$part/made" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_RPATH="$rpath" \
			"${flags[@]}" &&
			cmake --build "$part/build" --parallel "$(getconf _NPROCESSORS_ONLN)" &&
			cmake --install "$part/build"
	} >"$log" 2>&1 || fail "mlx-c did not build ($(grep -iE 'error' "$log" | head -n 1)). The whole story is in .deps/mlxc.log."
	printf '%s\n' "$mlxc_made_from" >"$part/made/made-from"
	rm -rf "$deps/mlxc"
	mv "$part/made" "$deps/mlxc"
	rm -rf "$part"
}

extras=$*
case "$(uname -s)/$(uname -m)" in
Linux/x86_64)
	system=linux
	mlx=mlx-cpu
	mlx_platform=manylinux_2_35_x86_64
	mlx_sum=fc5d31b90fc4f457b2f9614ed45651a567d22a6a11a03d114a90a4e10bdd8878
	library=so
	glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2 || true)
	at_least "${glibc:-0}" 2.35 || fail "MLX needs glibc 2.35 or newer (Debian 12, Ubuntu 22.04); this system has ${glibc:-none}."
	;;
Darwin/arm64)
	system=macos
	mlx=mlx-metal
	mlx_platform=macosx_14_0_arm64
	mlx_sum=3825fff379dbc107dd3413e564a06caeaa24819910ec49c0439e454c06a1b9b8
	library=dylib
	at_least "$(sw_vers -productVersion)" 14.0 || fail "Firesteel needs macOS 14 or newer; this is macOS $(sw_vers -productVersion)."
	;;
*) fail "Firesteel runs on Macs with Apple silicon and on 64-bit Intel or AMD Linux; this is $(uname -s) on $(uname -m)." ;;
esac

# The go.mod line is the minimum. A newer Go than the one installed may be fetched by Go itself.
go_wanted=$(awk '$1 == "go" { print $2 }' go.mod)
have go || fail "Go is missing. Install Go $go_wanted or newer (on a Mac: brew install go; else from go.dev) and try again."
go_found=$(go env GOVERSION 2>&1) || fail "Go $go_wanted or newer is needed; the one here says: $go_found"
at_least "${go_found#go}" "$go_wanted" || fail "Go $go_wanted or newer is needed; this is ${go_found#go}."

mlxc_made_from="$crate $crate_version, $mlx $mlx_version"
need_wheel="" need_mlxc="" need_zig=""
[ -d "$deps/wheel/${mlx/-/_}-$mlx_version.dist-info" ] && [ -f "$deps/wheel/mlx/lib/libmlx.$library" ] || need_wheel=yes
[ -f "$deps/mlxc/lib/libmlxc.$library" ] && [ "$(cat "$deps/mlxc/made-from" 2>/dev/null)" = "$mlxc_made_from" ] || need_mlxc=yes
case " $extras " in *" zig "*)
	[ "$system" != linux ] || [ -x "$deps/zig/ziglang/zig" ] || need_zig=yes ;;
esac
unfinished=$need_wheel$need_mlxc$need_zig

if [ "$system" = macos ]; then
	[ -z "$unfinished" ] || system_macos
elif have apt-get; then
	system_debian
else
	for tool in cc c++ make cmake pkg-config; do
		have $tool || fail "$tool is missing, and only Debian's and Ubuntu's packages are installed by this script. Install a C++ compiler, cmake, pkg-config, the OpenGL, X11, OpenBLAS and fmt development files, and try again."
	done
fi

[ -n "$unfinished" ] || exit 0
python3 -m pip --version >/dev/null 2>&1 || fail "Python 3 with pip is missing; it is used once, to download MLX."
[ -z "$need_mlxc" ] || have cargo || fail "cargo is missing; it is used once, to download mlx-c. Install Rust and try again."
mkdir -p "$deps"
[ -z "$need_wheel" ] || wheel $mlx $mlx_version $mlx_platform $mlx_sum "$deps/wheel"
[ -z "$need_mlxc" ] || build_mlxc
if [ -n "$need_zig" ]; then
	wheel ziglang $zig_version manylinux2010_x86_64 $zig_sum "$deps/zig"
	chmod +x "$deps/zig/ziglang/zig"
fi
say "done"
