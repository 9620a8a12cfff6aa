# Configure and build steps that run.sh and test.sh share; sourced, not run. Needs bash.

# configure_and_build FOLDER TARGET CMAKE_ARGUMENT...
# Brings TARGET of the build folder up to date. Output of the tools goes to FOLDER/build.log; on stderr come a line every
# ten seconds while something is compiled, the time it took when something was, and the errors when it fails.
# Call it from the root of the project.
configure_and_build() {
  local folder=$1 target=$2 started=$SECONDS log count
  shift 2
  mkdir -p "$folder"
  log=$folder/build.log
  # Configured once for the same arguments; ninja itself sees changed CMake files.
  if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/configured_with" 2>/dev/null)" != "$*" ]; then
    echo "build: configuring $folder" >&2
    if ! cmake "$@" >"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$folder/build.ninja"
      return 1
    fi
    echo "$*" >"$folder/configured_with"
  fi
  NINJA_STATUS="[%f/%t] " cmake --build "$folder" --target "$target" 2>&1 | tee "$log" | show_progress "$target"
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" | tail -n 60 >&2
    echo "build: FAILED after $((SECONDS - started)) s; all of it is in $log" >&2
    return 1
  fi
  count=$(grep -cE '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$log" || true)
  if [ "$count" -gt 0 ]; then
    echo "build: $count steps in $((SECONDS - started)) s" >&2
  else
    echo "build: $folder is up to date" >&2
  fi
}

# Passes on one of ninja's lines every ten seconds.
show_progress() {
  local next=$((SECONDS + 2)) line
  while IFS= read -r line; do
    if [ "$SECONDS" -ge "$next" ] && [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      echo "build: $1: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps" >&2
      next=$((SECONDS + 10))
    fi
  done
}
