#!/usr/bin/env bash
# Builds the Dockerfile for real and calls the server in it, on a Debian machine, as root, with no image registry and no
# container engine: `npm run container`. docs/container.md says what this shows and what it cannot.
#
#   check.sh            builds, runs, calls, stops, removes everything that it made
#   check.sh --can-run  only says what is missing here: exit 0 when nothing is, else 69
#
# Installs buildah, debootstrap and iproute2 with apt where they are missing, and nothing else outside its own folder
# under TMPDIR. Every wait is bounded. Prints `ok` or `not ok` a check, and writes the sums where TEST_REPORT says, in the
# form of the test runner's report. Exit 0 when all passed, 1 when not, 69 when this machine cannot run it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
here=scripts/container
# What a check says is kept back; the sums are told even when a signal comes in the middle of one.
exec </dev/null 3>&1

EXIT_UNAVAILABLE=69
PACKAGES=(buildah debootstrap debian-archive-keyring iproute2)
# A quiet call is over in half a minute; a drain lasts as long as the calls in it.
CALL_MAX_S=120
DRAIN_MAX_S=120
HEALTHY_MAX_S=30
HEARD_MIN_S=3

missing() {
  [[ $(uname -s) == Linux ]] || echo "Linux: mounts and namespaces are its own"
  ((EUID == 0)) || echo "root: building an image and mounting it read-only need it"
  local command
  for command in apt-get dpkg-query; do
    command -v "$command" >/dev/null || echo "$command: the base image is made of Debian's packages"
  done
  for command in node npm unshare nsenter setpriv timeout mount; do
    command -v "$command" >/dev/null || echo "$command"
  done
  [[ -d node_modules/wavefile ]] || echo "the project's packages: run npm ci first"
  if ((EUID == 0)) && ! unshare --mount --pid --net --fork true 2>/dev/null; then
    echo "the right to make namespaces: this is a container that keeps it back"
  fi
}

lacks=$(missing)
if [[ -n $lacks ]]; then
  echo "the container cannot be built and run here. Missing:" >&2
  printf '  %s\n' "${lacks//$'\n'/$'\n'  }" >&2
  exit $EXIT_UNAVAILABLE
fi
if [[ ${1:-} == --can-run ]]; then exit 0; fi

# Everything below is mounted in a namespace of this script's own, so that no mount can outlive it.
if [[ ${CONTAINER_CHECK_NAMESPACE:-} != "$$" ]]; then
  CONTAINER_CHECK_NAMESPACE=$$ exec unshare --mount --propagation private bash "$here/check.sh" "$@"
fi
unset CONTAINER_CHECK_NAMESPACE

# Some gigabytes for a quarter of an hour: /tmp may be memory.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/earshot-container.XXXXXX") || exit 1
# One store for this run alone, in a driver that needs no module of the kernel and no mount.
image_tool=(buildah --root "$work/store" --runroot "$work/runtime" --storage-driver vfs)
passed=0
failed=0
step=
runner=
caller=
started_s=$SECONDS

close() {
  local code=$?
  trap - EXIT
  trap '' HUP INT TERM
  if [[ -n $step ]]; then kill -TERM "$step" 2>/dev/null && wait "$step" 2>/dev/null; fi
  if [[ -n $caller ]]; then kill -TERM "$caller" 2>/dev/null && wait "$caller" 2>/dev/null; fi
  # With its process 1 goes all that is in the container's namespace.
  if [[ -n $runner ]]; then
    kill -KILL "$(container_pid)" "$runner" 2>/dev/null
    wait "$runner" 2>/dev/null
  fi
  local left
  while read -r left; do
    umount -l "$left"
  done < <(awk -v below="$work/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r)
  rm -rf --one-file-system "$work"
  [[ -e $work ]] && echo "could not remove $work" >&3
  if ((code != 0 && failed == 0)); then failed=1; fi
  if [[ -n ${TEST_REPORT:-} ]]; then
    echo "{\"numPassedTests\":$passed,\"numFailedTests\":$failed,\"testResults\":[]}" >"$TEST_REPORT"
  fi
  echo "container: $passed ok, $failed not ok, $((SECONDS - started_s)) s" >&3
  exit $((failed > 0))
}
trap close EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# bounded SECONDS COMMAND...: in the background, so that a signal to this script is seen while it runs.
bounded() {
  local limit=$1 code=0
  shift
  timeout --kill-after=10 "$limit" "$@" &
  step=$!
  wait "$step" || code=$?
  step=
  if ((code == 124)); then echo "stopped after $limit s: $*" >&2; fi
  return "$code"
}

# check "what holds" COMMAND...: prints what the command said only when it failed.
check() {
  local what=$1 began_s=$SECONDS
  shift
  if "$@" >"$work/said" 2>&1; then
    passed=$((passed + 1))
    echo "ok - $what ($((SECONDS - began_s)) s)"
  else
    failed=$((failed + 1))
    echo "not ok - $what"
    tail -n 60 "$work/said" | sed 's/^/    /'
    return 1
  fi
}

# must: a check without which the rest means nothing.
must() { check "$@" || exit 1; }

install_packages() {
  local package lacking=()
  for package in "${PACKAGES[@]}"; do
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      lacking+=("$package")
  done
  if ((${#lacking[@]} == 0)); then return 0; fi
  bounded 180 apt-get update -qq || return 1
  DEBIAN_FRONTEND=noninteractive bounded 300 apt-get install -y -qq --no-install-recommends "${lacking[@]}"
}

# What npm needs on this machine to reach its registry is lent to the build and is no part of any image: the certificates
# and the registry's address. Proxies are passed on by buildah itself.
build_image() {
  local certificates=/etc/ssl/certs/ca-certificates.crt lent=()
  printf 'registry=%s\n' "$(npm config get registry)" >"$work/npmrc"
  if [[ -f $certificates ]]; then
    printf 'cafile=%s\n' "$certificates" >>"$work/npmrc"
    lent+=(--volume "$certificates:$certificates:ro")
  fi
  lent+=(--volume "$work/npmrc:/usr/local/etc/npmrc:ro")
  # Docker's format: the other one has no room for HEALTHCHECK.
  bounded 900 "${image_tool[@]}" bud --isolation chroot --network host --pull=never --format docker --no-cache \
    "${lent[@]}" --tag earshot --file Dockerfile .
}

# config_of PART: how the image wants to be run.
config_of() { node "$here/image-config.mjs" "$1" <"$work/inspect"; }

# bytes below a folder of the image, in millions, one digit.
megabytes() { du -sb "$@" | awk '{ sum += $1 } END { printf "%.1f MB", sum / 1e6 }'; }

tell_sizes() {
  echo "# base (stand-in): $(megabytes "$rootfs" | awk -v app="$(megabytes "$rootfs/app")" '{ printf "%.1f MB", $1 - app }')"
  echo "# added by the Dockerfile: $(megabytes "$rootfs/app"), of it node_modules $(megabytes "$rootfs/app/node_modules"), dist $(megabytes "$rootfs/app/dist")"
  echo "# added, compressed: $(tar -C "$rootfs" -c app | gzip -6 | wc -c | awk '{ printf "%.1f MB", $1 / 1e6 }')"
}

holds_only_what_runs() {
  local unwanted
  unwanted=$(find "$rootfs/app" \( -name '.env*' -o -name .git -o -path '*/app/test' -o -path '*/app/src' -o -name '*.map' \
    -o -path '*/node_modules/typescript' -o -path '*/node_modules/vitest' -o -path '*/node_modules/oxlint' \) -printf '%P\n')
  [[ -z $unwanted ]] || { echo "$unwanted"; return 1; }
}

holds_nothing_of_this_machine() {
  local host
  for host in "$rootfs/usr/local/etc/npmrc" "$rootfs/etc/ssl/certs/ca-certificates.crt"; do
    [[ ! -s $host ]] || { echo "${host#"$rootfs"} was left in the image"; return 1; }
  done
  ! grep -rlF -- "$work" "$rootfs/app" "$rootfs/usr/local/etc" "$rootfs/etc" 2>/dev/null
}

runs_as_a_plain_user() { [[ $(config_of user) =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || { config_of user; return 1; }; }

# start_container ENVIRONMENT_FILE: in the background, as `$runner`, which does not outlive this script, however that ends.
start_container() {
  local command
  mapfile -t command < <(config_of cmd)
  setpriv --pdeathsig KILL unshare --mount --pid --net --fork --kill-child --propagation private \
    bash "$here/run-rootfs.sh" "$rootfs" "$work/volume" "$(config_of volumes)" "$(config_of user)" \
    "$(config_of workdir)" "$1" "${command[@]}" >"$work/server.log" 2>&1 &
  runner=$!
}

# Waits for the container's end, at most so many seconds; its exit code.
container_end() {
  local deadline=$((SECONDS + $1))
  while kill -0 "$runner" 2>/dev/null; do
    if ((SECONDS >= deadline)); then
      echo "still running after $1 s"
      tail -n 20 "$work/server.log"
      return 124
    fi
    sleep 0.2
  done
  wait "$runner"
}

refuses_an_open_door() {
  config_of env >"$work/bare.env"
  start_container "$work/bare.env"
  container_end 30
  local code=$?
  runner=
  cat "$work/server.log"
  ((code == 78)) && grep -q '^earshot: TWILIO_AUTH_TOKEN is required' "$work/server.log"
}

# Without an account: only HOST is given, and an idle server has nothing to drain.
rehearses_on_loopback() {
  { config_of env | grep -v '^HOST='; echo HOST=127.0.0.1; } >"$work/server.env"
  start_container "$work/server.env"
  becomes_healthy || return 1
  kill -"$(config_of stopsignal)" "$(container_pid)"
  container_end 20
  local code=$?
  runner=
  echo "exit code $code"
  return "$code"
}

secret() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# The process that is 1 inside, as this machine numbers it.
container_pid() { tr -d ' ' <"/proc/$runner/task/$runner/children"; }

# inside COMMAND...: the machine's own command on the container's loopback.
inside() { nsenter --target "$(container_pid)" --net -- "$@"; }

# as_container COMMAND...: a command of the image, as Docker's exec would run it.
as_container() {
  local user environment
  user=$(config_of user)
  mapfile -t environment <"$work/server.env"
  nsenter --target "$(container_pid)" --mount --pid --net -- chroot "$rootfs" setpriv --reuid="${user%%:*}" \
    --regid="${user##*:}" --clear-groups env -i --chdir="$(config_of workdir)" "${environment[@]}" "$@"
}

image_health() {
  local command
  mapfile -t command < <(config_of healthcheck)
  as_container timeout 5 "${command[@]}"
}

becomes_healthy() {
  local deadline=$((SECONDS + HEALTHY_MAX_S))
  until image_health; do
    if ! kill -0 "$runner" 2>/dev/null || ((SECONDS >= deadline)); then
      cat "$work/server.log"
      return 1
    fi
    sleep 0.5
  done
}

is_confined() {
  local status
  status=$(<"/proc/$(container_pid)/status")
  grep -E '^(Name|Uid|Gid|Groups|Cap|NoNewPrivs|NSpid)' <<<"$status"
  [[ $status =~ Uid:[[:space:]]+10001[[:space:]]+10001 && $status =~ CapEff:[[:space:]]+0+[[:space:]] ]] &&
    [[ $status =~ CapBnd:[[:space:]]+0+[[:space:]] && $status =~ NoNewPrivs:[[:space:]]+1 ]] &&
    [[ $status =~ NSpid:[[:space:]]+[0-9]+[[:space:]]+1[[:space:]] ]]
}

# Root itself is refused, so that it is the mount and not the files' owner that keeps the server from writing.
writes_only_where_it_may() {
  local folder
  for folder in /app /etc /usr/local /var/tmp; do
    if nsenter --target "$(container_pid)" --mount -- chroot "$rootfs" touch "$folder/probe"; then
      echo "$folder can be written"
      return 1
    fi
  done
  as_container sh -c 'touch "$DATA_DIR/probe" /tmp/probe && rm "$DATA_DIR/probe" /tmp/probe'
}

listens_on_all_addresses() { inside node -e '
  const { readFileSync } = require("node:fs");
  const sockets = readFileSync("/proc/self/net/tcp", "utf8").split("\n").map((line) => line.trim().split(/\s+/));
  process.exit(sockets.some(([, local, , state]) => local === "00000000:1F90" && state === "0A") ? 0 : 1);'; }

# asked PATH TOKEN: the answer's body; fails where the answer is not 200.
asked() { inside node -e '
  const [path, token] = process.argv.slice(1);
  fetch(`http://127.0.0.1:8080${path}`, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(5000) })
    .then(async (answer) => { process.stdout.write(await answer.text()); process.exitCode = answer.ok ? 0 : 1; });' "$@"; }

serves_metrics() { ! asked /metrics wrong >/dev/null && asked /metrics "$metrics_token" | grep '^earshot_info{'; }

# place_call WAV: from the checkout, through the container's doors, in the background, as `$caller`.
place_call() {
  PUBLIC_URL=$public_url TWILIO_AUTH_TOKEN=$auth_token CONSOLE_TOKEN=$console_token \
    timeout --kill-after=5 "$CALL_MAX_S" nsenter --target "$(container_pid)" --net -- \
    npm run --silent call -- fixtures/callers/short-answers.wav --url http://127.0.0.1:8080 --out "$1" --no-display &
  caller=$!
}

# Waits for the call's end; its exit code.
call_end() {
  local code=0
  wait "$caller" || code=$?
  caller=
  return "$code"
}

answers_a_call() {
  place_call "$work/heard.wav"
  call_end && node "$here/heard.mjs" "$work/heard.wav" "$HEARD_MIN_S"
}

has_live_call() { asked '/calls?state=live' "$console_token" | grep -q '"callSid"'; }

# SIGTERM in the middle of a call: the call is finished, the server alive meanwhile, then over with 0.
drains() {
  place_call "$work/drained.wav"
  local deadline=$((SECONDS + 20)) code=0
  until has_live_call; do
    if ((SECONDS >= deadline)); then echo 'the call did not begin'; return 1; fi
    sleep 0.5
  done
  kill -"$(config_of stopsignal)" "$(container_pid)"
  sleep 1
  if asked /readyz - >/dev/null; then echo 'ready while draining'; code=1; fi
  image_health || code=1
  call_end || { echo 'the call was not finished'; code=1; }
  node "$here/heard.mjs" "$work/drained.wav" "$HEARD_MIN_S" || code=1
  container_end "$DRAIN_MAX_S"
  local end=$?
  runner=
  tail -n 5 "$work/server.log"
  echo "exit code $end"
  ((end == 0 && code == 0))
}

# shellcheck source=scripts/container/base.sh
. "$here/base.sh"

must 'buildah and debootstrap are there' install_packages
base=$(sed -n 's/^FROM \(\S*\).*/\1/p' Dockerfile | sort -u)
must "a base image can be made as $base" make_base "$base"
must 'the Dockerfile builds' build_image
"${image_tool[@]}" inspect --type image earshot >"$work/inspect" || exit 1
container=$("${image_tool[@]}" from --pull-never earshot) && rootfs=$("${image_tool[@]}" mount "$container") || exit 1
tell_sizes
check 'the image runs as a numeric user that is not root' runs_as_a_plain_user
check 'the image holds only what runs' holds_only_what_runs
check 'the image holds nothing of this machine' holds_nothing_of_this_machine

# What Docker does with a new named volume: it starts as the image's folder, its owner and mode with it.
cp -a "$rootfs$(config_of volumes)" "$work/volume"
check 'without tokens the server refuses to listen on all addresses, with 78' refuses_an_open_door
check 'on loopback it rehearses with no variable but HOST, and stops at once with 0 when idle' rehearses_on_loopback

public_url=https://voice.example.com auth_token=$(secret) console_token=$(secret) metrics_token=$(secret)
{
  config_of env
  printf '%s=%s\n' MODEL rehearsal PUBLIC_URL "$public_url" TWILIO_AUTH_TOKEN "$auth_token" \
    CONSOLE_TOKEN "$console_token" METRICS_TOKEN "$metrics_token"
} >"$work/server.env"
start_container "$work/server.env"
must 'the health check of the image becomes green' becomes_healthy
check 'the server is process 1, of user 10001, without capabilities' is_confined
check 'nothing but DATA_DIR and /tmp can be written' writes_only_where_it_may
check 'the server listens on all addresses of the container' listens_on_all_addresses
check 'metrics are served to the one who has the token' serves_metrics
check 'a caller is answered, and hears it' answers_a_call
check 'SIGTERM lets a running call finish, then ends with 0' drains
