_satrap() {
  local command=satrap previous='' before value
  for before in "${(@)words[2,CURRENT-1]}"; do
    [[ $before == -* || " $(_satrap_words "$command") " != *" $before "* ]] || command+=" $before"
    previous=$before
  done
  if compset -P '*='; then
    previous=${IPREFIX%=}
    value=$(_satrap_value "$command" "$previous")
    [[ -n $value ]] || value=$(_satrap_key "$previous")
    [[ -n $value ]] || value=@any
  else
    value=$(_satrap_value "$command" "$previous")
  fi
  case $value in
    @any) ;;
    @file) _files ;;
    '')
      compadd -- ${=$(_satrap_words "$command")}
      compadd -S '' -- ${=$(_satrap_keys "$command")}
      [[ $(_satrap_takes_files "$command") != yes ]] || _files
      ;;
    *) compadd -- ${=value} ;;
  esac
}
compdef _satrap satrap
