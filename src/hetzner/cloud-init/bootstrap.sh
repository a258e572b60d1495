#!/bin/bash
# Turns a fresh Ubuntu server into a Pushleft node. cloud-init runs it once, as root, without a terminal; each phase says where it is
# in /var/log/cloud-init-output.log. PUSHLEFT_ROOT (empty on a node) moves all files below another directory, for tests.
set -euo pipefail

PUSHLEFT_ROOT="${PUSHLEFT_ROOT:-}"
current_phase=start
bootstrap_started=$SECONDS

say() {
  echo "pushleft-bootstrap: $*"
}

phase() {
  current_phase=$1
  say "phase $1 after $((SECONDS - bootstrap_started)) s"
}

report_failure() {
  local status=$?
  if [[ $status -ne 0 ]]; then
    say "failed in phase $current_phase with exit status $status"
  fi
}

# put_file MODE PATH: writes standard input. The file has its mode before it has its name, so nobody reads a secret in between.
put_file() {
  local mode=$1 path=$PUSHLEFT_ROOT$2
  mkdir -p "$(dirname "$path")"
  (umask 077 && cat >"$path.new")
  chmod "$mode" "$path.new"
  mv -f -T "$path.new" "$path"
}

write_files() {
  install -d -m 0755 "$PUSHLEFT_ROOT/etc/pushleft"
  install -d -m 0700 "$PUSHLEFT_ROOT/var/lib/pushleft"
  install -d -m 0755 "$PUSHLEFT_ROOT/var/lib/pushleft/data"
  # @FILES@
}

load_environment() {
  set -a
  # shellcheck source=/dev/null
  . "$PUSHLEFT_ROOT/etc/pushleft/agent.env"
  set +a
}

prepare_kernel() {
  modprobe br_netfilter
  sysctl -q -p "$PUSHLEFT_ROOT/etc/sysctl.d/90-pushleft.conf"
}

# DPkg::Lock::Timeout waits for the dpkg lock, but not for the lists lock that `apt-get update` takes: hence the loop.
apt_get() {
  local deadline=$((SECONDS + 300)) attempt=1
  until apt-get -q -y -o DPkg::Lock::Timeout=30 "$@"; do
    if ((SECONDS >= deadline)); then
      say "apt-get $1 failed for 300 s"
      return 1
    fi
    say "apt-get $1 failed in attempt $attempt, another one follows"
    attempt=$((attempt + 1))
    sleep 5
  done
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt_get update
  apt_get install --no-install-recommends ca-certificates curl openssl zstd docker.io
}

architecture() {
  local name
  name=$(dpkg --print-architecture)
  case $name in
    amd64 | arm64) echo "$name" ;;
    *)
      say "there is no agent for architecture $name" >&2
      return 1
      ;;
  esac
}

# fetch URL FILE KIBIBYTES: https only, redirects included. ulimit bounds what a server without a Content-Length may send.
fetch() {
  (
    ulimit -f "$3"
    curl --fail --silent --show-error --location --proto '=https' --proto-redir '=https' --tlsv1.2 --max-redirs 3 \
      --connect-timeout 10 --max-time 120 --retry 5 --retry-connrefused --retry-max-time 240 \
      --max-filesize $(($3 * 1024)) --output "$2" "$1"
  )
}

# download_release DIRECTORY ARCHIVE
download_release() {
  local url=${PUSHLEFT_RELEASE_URL%/}/$PUSHLEFT_AGENT_VERSION
  fetch "$url/SHA256SUMS" "$1/SHA256SUMS" 64
  fetch "$url/SHA256SUMS.sig" "$1/SHA256SUMS.sig" 4
  fetch "$url/$2" "$1/$2" 262144
}

# verify_release DIRECTORY ARCHIVE: the signature covers the sums, the sums name the archive, and the name holds the version: an old
# release, however well signed, cannot pass for this one. OpenSSL 3.0 wants the signed bytes in a file, not in a pipe.
# Every step says `|| exit` for itself: bash forgets `set -e` in a function whose result is being tested.
verify_release() {
  (
    cd "$1" || exit
    base64 -d SHA256SUMS.sig >SHA256SUMS.sig.raw || exit
    openssl pkeyutl -verify -rawin -pubin -inkey "$PUSHLEFT_ROOT/etc/pushleft/release-key.pem" \
      -sigfile SHA256SUMS.sig.raw -in SHA256SUMS || exit
    awk -v name="$2" 'substr($0, 67) == name' SHA256SUMS >SHA256SUMS.one || exit
    if [[ $(wc -l <SHA256SUMS.one) -ne 1 ]]; then
      say "the signed sums do not name $2 exactly once"
      exit 1
    fi
    sha256sum -c --strict SHA256SUMS.one
  )
}

# extract_agent DIRECTORY ARCHIVE: the archive holds one regular file, pushleft-agent, and nothing else; it becomes DIRECTORY/agent.
extract_agent() {
  (
    cd "$1" || exit
    ulimit -f 524288
    tar --zstd -tf "$2" >entries || exit
    tar --zstd -tvf "$2" >entries.long || exit
    if [[ $(cat entries) != pushleft-agent || $(head -c 1 entries.long) != - ]]; then
      say "$2 must hold exactly one regular file, pushleft-agent"
      exit 1
    fi
    tar --zstd -xOf "$2" pushleft-agent >agent
  )
}

# install_agent DIRECTORY: a program that cannot even say its version never takes the place of one that can.
install_agent() {
  local target=$PUSHLEFT_ROOT/usr/local/bin/pushleft-agent
  install -D -m 0755 "$1/agent" "$target.new" && "$target.new" --version && mv -f -T "$target.new" "$target"
}

# The agent itself tries again while the gateway does not answer. The secret expires 15 minutes after it was made, so there is no
# point in asking for longer; a refusal is final and ends it at once.
enroll() {
  "$PUSHLEFT_ROOT/usr/local/bin/pushleft-agent" enroll --wait 600
}

enable_service() {
  systemctl daemon-reload
  systemctl enable --now docker.service
  systemctl enable --now pushleft-agent.service
}

main() {
  local work archive
  trap report_failure EXIT
  phase files
  write_files
  load_environment
  phase kernel
  prepare_kernel
  phase packages
  install_packages
  work=$(mktemp -d)
  archive=pushleft-agent-$PUSHLEFT_AGENT_VERSION-linux-$(architecture).tar.zst
  phase download
  download_release "$work" "$archive"
  phase verify
  verify_release "$work" "$archive"
  phase install
  extract_agent "$work" "$archive"
  install_agent "$work"
  rm -rf "$work"
  phase enroll
  enroll
  phase service
  enable_service
  phase complete
}

# Sourced, it only defines the functions.
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  main
fi
