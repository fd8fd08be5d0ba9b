_satrap() {
  # What is completed ends at the cursor. Readline cuts words at `=` too, so they are cut here.
  local line=${COMP_LINE:0:COMP_POINT}
  local word=${line##*[[:space:]]} command=satrap previous='' prefix='' before value
  local -a words=()
  read -ra words <<< "${line%"$word"}"
  for before in "${words[@]:1}"; do
    [[ $before == -* || " $(_satrap_words "$command") " != *" $before "* ]] || command+=" $before"
    previous=$before
  done
  if [[ $word == *=* ]]; then
    previous=${word%%=*} prefix=${word%%=*}= word=${word#*=}
    value=$(_satrap_value "$command" "$previous")
    [[ -n $value ]] || value=$(_satrap_key "$previous")
    [[ -n $value ]] || value=@any
  else
    value=$(_satrap_value "$command" "$previous")
  fi
  [[ $COMP_WORDBREAKS != *=* ]] || prefix=''
  COMPREPLY=()
  case $value in
    @any) ;;
    @file) _satrap_files ;;
    '')
      mapfile -t COMPREPLY < <(compgen -W "$(_satrap_words "$command") $(_satrap_keys "$command")" -- "$word")
      [[ $(_satrap_takes_files "$command") != yes || $word == -* ]] || _satrap_files
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$value" -- "$word") ;;
  esac
  [[ -z $prefix ]] || COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
  if [[ ${#COMPREPLY[@]} = 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2> /dev/null || true  # which is refused outside of a completion
  fi
}
_satrap_files() {
  local -a files=()
  mapfile -t files < <(compgen -f -- "$word")
  COMPREPLY+=("${files[@]}")
  compopt -o filenames 2> /dev/null || true
}
complete -F _satrap satrap
