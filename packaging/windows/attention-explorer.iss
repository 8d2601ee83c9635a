; Inno Setup 6: iscc /DVersion=0.1.0 /DFolder=..\..\dist\attention-explorer /O..\..\dist attention-explorer.iss
; Installs for one person without rights, or for all with /ALLUSERS; silently with /VERYSILENT.
#ifndef Version
  #error Version is not given: /DVersion=...
#endif
#ifndef Folder
  #define Folder "..\..\dist\attention-explorer"
#endif

[Setup]
AppId={{6F0E6E0B-5A0C-4B3C-9E2B-3B8D5C0F7A41}
AppName=Attention Explorer
AppVersion={#Version}
AppPublisher=Attention Explorer contributors
VersionInfoVersion={#Version}
DefaultDirName={autopf}\Attention Explorer
DefaultGroupName=Attention Explorer
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog commandline
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile=..\..\LICENSE
OutputBaseFilename=attention-explorer-{#Version}-windows-setup
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
ChangesAssociations=yes
UninstallDisplayIcon={app}\attention-explorer-gui.exe

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

[InstallDelete]
; An upgrade leaves nothing of the version before.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Folder}\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{autoprograms}\Attention Explorer"; Filename: "{app}\attention-explorer-gui.exe"
Name: "{autodesktop}\Attention Explorer"; Filename: "{app}\attention-explorer-gui.exe"; Tasks: desktopicon

[Registry]
Root: HKA; Subkey: "Software\Classes\.attn\OpenWithProgids"; ValueType: string; ValueName: "AttentionExplorer.Session"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\.lesson\OpenWithProgids"; ValueType: string; ValueName: "AttentionExplorer.Session"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\AttentionExplorer.Session"; ValueType: string; ValueData: "Attention Explorer session or lesson"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\AttentionExplorer.Session\DefaultIcon"; ValueType: string; ValueData: "{app}\attention-explorer-gui.exe,0"
Root: HKA; Subkey: "Software\Classes\AttentionExplorer.Session\shell\open\command"; ValueType: string; ValueData: """{app}\attention-explorer-gui.exe"" ""%1"""

[Run]
Filename: "{app}\attention-explorer-gui.exe"; Description: "{cm:LaunchProgram,Attention Explorer}"; Flags: nowait postinstall skipifsilent
