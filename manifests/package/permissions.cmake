# The folders of a package are open, whatever the umask is that it is built under: the service's own user reads /etc/claimguard/config.
# CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS does not do this: the umask is taken from it, too.
file(CHMOD_RECURSE ${CPACK_TEMPORARY_INSTALL_DIRECTORY} DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
