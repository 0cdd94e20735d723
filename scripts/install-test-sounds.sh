#!/usr/bin/env bash
# Installs the recordings of people that the sound tests (test/sound/) read, from Debian's packages; docs/sounds.md
# gives their sources and licences. Needs root, apt and a Debian mirror: 32 MB to fetch, 60 MB on disk.
# Exits 0 when they are installed, 3 when this machine cannot install packages (no root, no apt), 1 when it failed.
set -euo pipefail

packages=(asterisk-core-sounds-en-wav pocketsphinx-testdata codec2-examples)

cannot() {
  echo "NOT INSTALLED: recorded human speech for the sound tests: $1" >&2
  exit 3
}

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || cannot 'there is no apt here'

installed() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || return 1
  done
}

if installed; then
  echo "already installed: ${packages[*]}"
  exit 0
fi
((EUID == 0)) || cannot 'only root can install packages'

# Waits and repeats have an end: a mirror that hangs or another apt that holds the lock must not hold CI.
apt=(apt-get --yes -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
  -o DPkg::Lock::Timeout=120)
export DEBIAN_FRONTEND=noninteractive
# The lists that are there may be enough, and new ones may not be to be had.
if ! "${apt[@]}" install --no-install-recommends "${packages[@]}"; then
  "${apt[@]}" update
  "${apt[@]}" install --no-install-recommends "${packages[@]}"
fi
installed
