#!/usr/bin/env bash
# Debian packages that the tests need and pip cannot bring: a browser for the page of the service, software rendering
# for pictures, and what PhysX's USD is linked with. Installs what is missing, which needs root.
set -euo pipefail
missing=()
command -v chromium > /dev/null || missing+=(chromium)
if command -v dpkg > /dev/null; then
  for package in libegl1 libgl1-mesa-dri libgl1 libx11-6; do
    dpkg -s "$package" > /dev/null 2>&1 || missing+=("$package")
  done
fi
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "tests that need ${missing[*]} are skipped; on Debian: sudo apt-get install ${missing[*]}" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
