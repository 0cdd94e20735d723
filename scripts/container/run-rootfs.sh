#!/usr/bin/env bash
# Runs an image's command as a container runtime would with `--read-only`, in the fresh mount, process and network
# namespaces in which check.sh starts it: the root is mounted read-only, only the volume and /tmp can be written, and the
# command is process 1, as the image's user, without a capability and with no way to get one.
#   run-rootfs.sh ROOTFS VOLUME VOLUME_PATH USER WORKDIR ENV_FILE COMMAND...
# ENV_FILE holds NAME=VALUE lines, the whole environment of the command.
set -euo pipefail

rootfs=$1 volume=$2 volume_path=$3 user=$4 workdir=$5
mapfile -t environment <"$6"
shift 6

mount --bind "$rootfs" "$rootfs"
mount -t proc -o nosuid,nodev,noexec proc "$rootfs/proc"
mount -t tmpfs -o nosuid,size=64k,mode=755 tmpfs "$rootfs/dev"
for device in null zero random urandom; do
  : >"$rootfs/dev/$device"
  mount --bind "/dev/$device" "$rootfs/dev/$device"
done
mount -o remount,ro "$rootfs/dev"
mount -t tmpfs -o nosuid,nodev,size=64m,mode=1777 tmpfs "$rootfs/tmp"
mount --bind "$volume" "$rootfs$volume_path"
mount -o remount,bind,ro "$rootfs"
# The container's own address, and no other: nothing outside can be reached from it.
ip link set lo up

# Each of these becomes the next, so that the command is process 1 in the end. It dies with the process that holds its
# namespace; said again here, as a change of user forgets it.
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$rootfs" \
  setpriv --reuid="${user%%:*}" --regid="${user##*:}" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
  --pdeathsig KILL \
  env -i --chdir="$workdir" "${environment[@]}" "$@"
