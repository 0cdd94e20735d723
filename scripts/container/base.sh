# shellcheck shell=bash
# Makes a stand-in for the public base image out of Debian's and npm's packages, for machines that reach no image
# registry. Sourced by check.sh, which provides `bounded`, `$image_tool` and `$work`.
#
# It has what the public image has and ours needs: Debian's minimal system of the tag's suite, and under /usr/local the
# newest Node of the tag's line with npm. It is not that image: versions and sizes differ.

# Debian's mirror as this machine's apt knows it; nothing when apt has another distribution, and debootstrap takes its own.
debian_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' |
    sort -u | head -n 1
}

# An npm major that the line's releases brought: the public image has the npm of its Node.
npm_of_line() {
  if (($1 >= 24)); then echo 11; else echo 10; fi
}

# make_base TAG, such as node:20-bookworm-slim
make_base() {
  local tag=$1 line suite arch mirror container rootfs tools=$work/tools
  if [[ ! $tag =~ ^node:([0-9]+)-([a-z]+)-slim$ ]]; then
    echo "the Dockerfile's base is $tag; this script can stand in only for node:LINE-SUITE-slim" >&2
    return 1
  fi
  line=${BASH_REMATCH[1]} suite=${BASH_REMATCH[2]} arch=$(node -p process.arch)
  mirror=$(debian_mirror) || mirror=
  container=$("${image_tool[@]}" from scratch) && rootfs=$("${image_tool[@]}" mount "$container") || return 1
  bounded 300 debootstrap --variant=minbase "$suite" "$rootfs" ${mirror:+"$mirror"} || return 1
  # Packages that were fetched are no part of an image.
  rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/* "$rootfs"/var/log/*.log
  # Its mirror is this machine's, not the image's.
  : >"$rootfs/etc/apt/sources.list"
  rm -rf "$rootfs/etc/resolv.conf" "$rootfs/etc/hostname" "${rootfs:?}"/dev/*
  # In a folder without a package.json, and with the script-runner off: these are two plain packages.
  bounded 180 npm install --prefix "$tools" --no-save --no-package-lock --no-audit --no-fund --ignore-scripts \
    "node-linux-$arch@$line" "npm@$(npm_of_line "$line")" || return 1
  install -D -m 0755 "$tools/node_modules/node-linux-$arch/bin/node" "$rootfs/usr/local/bin/node" || return 1
  mkdir -p "$rootfs/usr/local/lib/node_modules"
  cp -R "$tools/node_modules/npm" "$rootfs/usr/local/lib/node_modules/npm" || return 1
  chown -R 0:0 "$rootfs/usr/local"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$rootfs/usr/local/bin/npm"
  "${image_tool[@]}" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd node "$container" &&
    bounded 120 "${image_tool[@]}" commit --quiet --rm "$container" "$tag" >/dev/null || return 1
  rm -rf "$tools"
}
